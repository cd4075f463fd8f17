(() => {
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
})()
