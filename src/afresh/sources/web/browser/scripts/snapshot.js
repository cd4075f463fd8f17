limit => {
  const rootOf = window.__afreshRoot || (host => host.shadowRoot);
  const page = Object.getOwnPropertyDescriptor(Document.prototype, 'documentElement').get.call(document);
  try { if (window.__afreshMark) window.__afreshMark(page); } catch {}
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
}
