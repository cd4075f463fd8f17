"""Pages that try the patience of a browser, its memory, and the walls around it."""

RESTLESS = """<!doctype html><title>Restless</title><div id="app"></div><script>
let count = 0;
setInterval(() => {
  document.getElementById('app').innerHTML = `<p>Round ${++count} of a page that never comes to rest.</p>`;
  fetch('/never?' + count).catch(() => {});
}, 100);
</script>"""

SPINNING = """<!doctype html><title>Spinning</title><div id="app"></div><script>
setTimeout(() => { for (;;) {} }, 10);
</script>"""

GREEDY = """<!doctype html><title>Greedy</title><div id="app"></div><script>
const held = [];
setInterval(() => { for (let i = 0; i < 4; i++) held.push(new Uint8Array(16 * 1024 * 1024).fill(1)); }, 5);
setInterval(() => { document.title = 'held ' + held.length; }, 50);
</script>"""

NAGGING = """<!doctype html><title>Nagging</title><div id="app"></div><script>
addEventListener('beforeunload', event => { event.preventDefault(); event.returnValue = 'stay'; });
alert('first'); confirm('second'); prompt('third'); print();
for (let i = 0; i < 5; i++) open('/popup' + i);
Notification && Notification.requestPermission && Notification.requestPermission();
const link = document.createElement('a');
link.href = URL.createObjectURL(new Blob(['x'])); link.download = 'x.bin';
document.body.append(link); link.click(); link.remove();
navigator.geolocation && navigator.geolocation.getCurrentPosition(() => {}, () => {});
document.getElementById('app').innerHTML = '<p>After all the dialogs there is some text to be read.</p>';
</script>"""

TAMPERING = """<!doctype html><title>Tampering</title><p>The text of a page that answers for itself.</p>
<script>
const text = {slice: () => '', trim: () => ({length: null})};
Object.defineProperty(document.body, 'innerText', {get: () => text});
</script>"""

CLOBBERING = """<!doctype html><title>Clobbering</title><form name="links"><input></form>
<form name="body"></form>
<form name="querySelectorAll"></form><form name="documentElement"></form><form name="title"></form>
<p>The text of a page whose forms have unlucky names.</p>"""

COMPONENTS = """<!doctype html><title>Components</title><my-page><b>given</b></my-page><script>
customElements.define('my-page', class extends HTMLElement {
  connectedCallback() {
    const root = this.attachShadow({mode: 'closed'});
    root.innerHTML = '<h1>Inside a component</h1>'
      + '<p>It holds text that is <slot></slot> to readers, and a link.</p>'
      + '<a href="/inside">inside</a>';
  }
});
</script>"""


def prying(private: str, port: int, udp: int, name: str = "localhost") -> str:
    """A page that tries every way to an address it may not reach; its text says what came back."""
    return (
        _PRYING.replace("{host}", private)
        .replace("{port}", str(port))
        .replace("{udp}", str(udp))
        .replace("{name}", name)
    )


_PRYING = """<!doctype html><title>Prying</title>
<link rel="dns-prefetch" href="//{name}:{port}"><link rel="preconnect" href="http://{host}:{port}">
<link rel="prefetch" href="http://{host}:{port}/prefetch"><link rel="stylesheet" href="http://{host}:{port}/style">
<img src="http://{host}:{port}/image"><iframe src="http://{host}:{port}/frame"></iframe>
<iframe src="file:///etc/passwd"></iframe><object data="http://{host}:{port}/object"></object>
<script src="http://{host}:{port}/script"></script>
<p>This page tries to reach what it may not, in many ways.</p><pre id="got"></pre>
<script>
const base = 'http://{host}:{port}', got = text => document.getElementById('got').append(text + ' ');
const attempts = [
  () => fetch(base + '/fetch', {mode: 'no-cors'}).then(() => got('FETCH')),
  () => fetch('http://{name}:{port}/name', {mode: 'no-cors'}).then(() => got('NAME')),
  () => fetch('/away').then(answer => answer.text()).then(text => got('REDIRECT:' + text)),
  () => fetch('file:///etc/passwd').then(() => got('FILE')),
  () => navigator.sendBeacon(base + '/beacon', 'x'),
  () => { new WebSocket('ws://{host}:{port}/socket').onopen = () => got('SOCKET'); },
  () => { new EventSource(base + '/events').onopen = () => got('EVENTS'); },
  () => new Worker(URL.createObjectURL(new Blob(['fetch("' + base + '/worker", {mode: "no-cors"})']))),
  () => new SharedWorker(URL.createObjectURL(new Blob(['fetch("' + base + '/shared", {mode: "no-cors"})']))),
  () => navigator.serviceWorker.register('/service.js'),
  () => new WebTransport('https://{host}:{udp}/transport'),
  () => {
    const kinds = ['stun:{host}:{udp}', 'turn:{host}:{udp}', 'turn:{host}:{port}?transport=tcp'];
    const frame = document.body.appendChild(document.createElement('iframe')).contentWindow;
    for (const Peer of [window.RTCPeerConnection, frame.RTCPeerConnection]) if (Peer) {
      const peer = new Peer({iceServers: kinds.map(urls => ({urls, username: 'u', credential: 'c'}))});
      peer.createDataChannel('x');
      peer.createOffer().then(offer => peer.setLocalDescription(offer));
    }
  },
  () => { const form = document.createElement('form'); form.action = base + '/form'; form.method = 'post';
          form.target = document.querySelector('iframe').name = 'inner';
          document.body.append(form); form.submit(); },
];
for (const attempt of attempts) try { Promise.resolve(attempt()).catch(() => {}); } catch {}
</script>"""
