(() => {
  const method = (type, name) => Function.prototype.call.bind(type.prototype[name]);
  const getter = (type, name) => Function.prototype.call.bind(
    Object.getOwnPropertyDescriptor(type.prototype, name).get);
  const computed = window.getComputedStyle.bind(window), value = method(CSSStyleDeclaration, 'getPropertyValue');
  const set = method(Element, 'setAttribute'), matches = method(Element, 'matches');
  const box = method(Element, 'getBoundingClientRect'), children = getter(Node, 'childNodes');
  const item = method(NodeList, 'item'), count = getter(NodeList, 'length'), kind = getter(Node, 'nodeType');
  const said = getter(Node, 'textContent'), insert = method(Node, 'insertBefore'), append = method(Node, 'appendChild');
  const create = Document.prototype.createElement.bind(document), range = Document.prototype.createRange.bind(document);
  const select = method(Range, 'selectNodeContents'), area = method(Range, 'getBoundingClientRect');
  const MARK = 'data-afresh-hidden', MOST = 50000, number = Number.parseFloat, test = method(RegExp, 'test');
  const known = Object.create(null);
  let pen = null, fill, wipe, pick, dye, within, Path;
  try {  // an engine without a canvas knows colours in rgb alone
    const board = create('canvas'), type = CanvasRenderingContext2D;
    board.width = board.height = 1;
    fill = method(type, 'fillRect'), wipe = method(type, 'clearRect'), pick = method(type, 'getImageData');
    dye = Function.prototype.call.bind(Object.getOwnPropertyDescriptor(type.prototype, 'fillStyle').set);
    within = method(type, 'isPointInPath'), Path = Path2D;
    pen = board.getContext('2d', {willReadFrequently: true});
  } catch (none) { pen = null; }
  const paint = text => {
    if (!pen) return null;
    dye(pen, 'rgba(1, 2, 3, 0)');
    dye(pen, text);
    wipe(pen, 0, 0, 1, 1);
    fill(pen, 0, 0, 1, 1);
    const [red, green, blue, alpha] = pick(pen, 0, 0, 1, 1).data;
    return [red, green, blue, alpha / 255];
  };
  const colour = text => {
    if (!text) return null;
    if (!text.startsWith('rgb')) return known[text] || (known[text] = paint(text));
    const parts = text.slice(text.indexOf('(') + 1).split(/[,/\s]+/).map(number);
    return parts.length >= 3 ? [parts[0], parts[1], parts[2], parts.length > 3 && parts[3] >= 0 ? parts[3] : 1] : null;
  };
  const empty = (path, rect) => {  // whether a path holds none of many points of an element
    const drawn = path.match(/^path\((?:(nonzero|evenodd), )?"([^"]*)"/);
    if (!drawn || !pen) return false;
    const shape = new Path(drawn[2]);
    for (let at = 0; at < 800; at++)
      if (within(pen, shape, (at % 40 + 0.5) * rect.width / 40, (Math.floor(at / 40) + 0.5) * rect.height / 20, drawn[1] || 'nonzero')) return false;
    return true;
  };
  const alike = (one, two) => one && two && [0, 1, 2].every(at => Math.abs(one[at] - two[at]) <= 12);
  const away = (rect, wide) => rect.width > 0 && rect.height > 0 &&
    (rect.right + scrollX <= 0 || rect.bottom + scrollY <= 0 || rect.left >= wide);
  const clipped = (style, rect) => {
    const clip = value(style, 'clip').match(/-?[\d.]+/g);
    if (clip && clip.length === 4 && (clip[2] - clip[0] <= 1 || clip[1] - clip[3] <= 1)) return true;
    const path = value(style, 'clip-path');
    const corners = path.startsWith('polygon(') ? path.slice(8, -1).split(', ').map(each => each.split(' ')) : [];
    if (corners.length && [0, 1].some(at => new Set(corners.map(each => each[at])).size <= 1)) return true;
    if (rect.width > 0 && rect.height > 0 && empty(path, rect)) return true;
    const sides = path.startsWith('rect(') || path.startsWith('xywh(') ? path.slice(5).split(' ').map(number) : [];
    if (sides.length >= 4 && (path[0] === 'x' ? Math.min(sides[2], sides[3]) : Math.min(sides[2] - sides[0], sides[1] - sides[3])) <= 1) return true;
    const inset = path.startsWith('inset(') ? path.slice(6).split(')')[0].split(' ').map(each =>
      each.endsWith('%') ? number(each) : 0) : [];
    const [top, right = top, bottom = top, left = right] = inset;
    return inset.length > 0 && (top + bottom >= 100 || right + left >= 100) ||
      test(/^(circle|ellipse)\(0(px|%)? |^(circle|ellipse)\(0(px|%)?\)/, path);
  };
  const whole = (element, style, rect, closed, wide) => {
    if (value(style, 'display') === 'none' || value(style, 'content-visibility') === 'hidden') return 'switched';
    if (number(value(style, 'opacity')) < 0.1 || test(/opacity\((0|0?\.0\d*)\)/, value(style, 'filter'))) return 'covered';
    if (number(value(style, 'zoom')) < 0.1 || clipped(style, rect) || test(/gradient\((to \w+, )?(rgba\(0, 0, 0, 0\)[^,]*(, )?)+\)$/, value(style, 'mask-image'))) return 'covered';
    if (closed || value(style, 'display') === 'contents') return null;
    if (away(rect, wide)) return 'covered';
    const flat = rect.width <= 1 || rect.height <= 1;
    if (flat && value(style, 'overflow-x') + value(style, 'overflow-y') !== 'visiblevisible') return 'switched';
    const turned = value(style, 'transform') !== 'none' || !['', 'none'].includes(value(style, 'scale'));
    return turned && (rect.width < 1 || rect.height < 1) ? 'covered' : null;
  };
  const unseen = (element, style, behind) => {
    const text = colour(value(style, '-webkit-text-fill-color') || value(style, 'color'));
    const painted = value(style, 'background-clip').includes('text') || value(style, '-webkit-background-clip').includes('text');
    if (text && !painted && (text[3] < 0.1 && value(style, 'text-shadow') === 'none' || alike(text, behind))) return true;
    if (number(value(style, 'letter-spacing')) <= -12) return true;
    const size = number(value(style, 'font-size'));  // browsers make tiny ones 6px if they are relative
    return size <= 2 || size <= 6 && !matches(element, 'svg *') || value(style, 'visibility') !== 'visible';
  };
  const mark = top => {
    const wide = 3 * Math.max(innerWidth, 1280), span = range();  // nobody scrolls that far to the side
    const waiting = [[top, [255, 255, 255], false]];
    for (let seen = 0; waiting.length && seen < MOST; seen++) {
      const [element, around, closed] = waiting.pop();
      if (kind(element) !== 1 || matches(element, 'script, style, head, template, math, .katex-mathml, mjx-assistive-mml')) continue;
      const style = computed(element), rect = box(element);
      const root = matches(element, 'html, body, main');
      const hidden = root ? null : whole(element, style, rect, closed, wide);
      if (hidden) { set(element, MARK, hidden); if (hidden === 'covered' || !said(element).trim()) continue; }
      const own = colour(value(style, 'background-color'));
      const placed = ['absolute', 'fixed'].includes(value(style, 'position'));
      const pictured = value(style, 'background-image') !== 'none';
      const behind = pictured ? null : own && own[3] > 0.9 ? own : own && own[3] > 0.05 || placed ? null : around;
      const shut = closed || matches(element, 'details:not([open])');
      const inner = window.__afreshRoot && window.__afreshRoot(element);
      for (let at = 0; inner && at < count(children(inner)); at++)
        waiting.push([item(children(inner), at), behind, shut || !!hidden]);
      const nodes = children(element), lost = !hidden && unseen(element, style, behind);
      for (let at = 0; at < count(nodes); at++) {
        const node = item(nodes, at);
        if (kind(node) === 1) waiting.push([node, behind, shut || !!hidden]);
        else if (kind(node) === 3 && said(node).trim() && !hidden) {
          select(span, node);
          if (lost || !shut && away(area(span), wide)) {
            const cover = create('span');
            set(cover, MARK, 'covered');
            insert(element, cover, node);
            append(cover, node);
          }
        }
      }
    }
  };
  Object.defineProperty(window, '__afreshMark', {value: mark});
})()
