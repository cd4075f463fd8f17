"""What is run inside pages: one script tells whether a page still changes, one takes it down as HTML."""

# Pages are shown as if nobody had been there before, and none may leave its mark on the run.
PREPARE = """(() => {
  for (const name of ['RTCPeerConnection', 'webkitRTCPeerConnection', 'WebTransport', 'Notification'])
    try { Object.defineProperty(window, name, {value: undefined, configurable: false}); } catch {}
  window.open = () => null;
  window.print = () => {};
  const attach = Element.prototype.attachShadow, roots = new WeakMap();
  Element.prototype.attachShadow = function (init) {
    const root = attach.call(this, init);
    roots.set(this, root);
    return root;
  };
  Object.defineProperty(window, '__afreshRoot', {value: host => roots.get(host) || host.shadowRoot});
})()"""

# What a reader sees, as two numbers in a string: a hash of text and targets of links, the length of the text.
# Getters of the prototype are asked, as a form named "links" takes the place of document.links.
FINGERPRINT = """() => {
  const own = name => Object.getOwnPropertyDescriptor(Document.prototype, name).get.call(document);
  const body = own('body');
  if (!body) return '0 0';
  const text = body.innerText || '';
  let hash = 5381;
  const add = word => { for (let i = 0; i < word.length; i++) hash = (hash * 33 + word.charCodeAt(i)) | 0; };
  add(own('title'));
  add(text.slice(0, 200000));
  const links = own('links');
  for (let i = 0; i < links.length && i < 5000; i++) add(links[i].href);
  let shown = text.trim().length;
  if (!shown && body.querySelector(':defined:not(script):not(style)'))
    for (const host of body.querySelectorAll('*')) {
      const root = window.__afreshRoot && window.__afreshRoot(host);
      if (root) { add(root.textContent || ''); shown += (root.textContent || '').trim().length; }
    }
  return `${hash | 0} ${shown | 0}`;
}"""

# The document as HTML, with the inside of components where a reader sees it; null if it is too large.
SNAPSHOT = """limit => {
  const rootOf = window.__afreshRoot || (host => host.shadowRoot);
  const page = Object.getOwnPropertyDescriptor(Document.prototype, 'documentElement').get.call(document);
  const shadows = [...page.querySelectorAll('*')].some(each => rootOf(each));
  const flat = node => {
    if (node.nodeName === 'SLOT') {
      const given = node.assignedNodes();
      const part = document.createDocumentFragment();
      for (const child of given.length ? given : node.childNodes) part.append(flat(child));
      return part;
    }
    const copy = node.cloneNode(false);
    const root = node.nodeType === 1 ? rootOf(node) : null;
    for (const child of (root || node).childNodes) copy.append(flat(child));
    return copy;
  };
  const top = shadows ? flat(page) : page;
  const html = '<!doctype html>' + top.outerHTML;
  return html.length > limit ? null : html;
}"""
