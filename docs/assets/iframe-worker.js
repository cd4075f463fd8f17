// Browsers start no Worker for pages that are opened as files. The search then runs in a hidden frame instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.ready = new Promise((resolve) => this.frame.addEventListener("load", resolve, { once: true }));
      const base = document.baseURI.replace(/"/g, "%22");
      const script = String(url).replace(/"/g, "%22");
      this.frame.srcdoc =
        `<base href="${base}"><script>` +
        "var answer = (data) => parent.postMessage({ fromSearch: data }, '*');" +
        "window.postMessage = answer;" +
        "window.importScripts = () => {};" +
        `</` + `script><script src="${script}"></` + "script>";
      window.addEventListener("message", (event) => {
        if (event.source === this.frame.contentWindow && event.data && "fromSearch" in event.data) {
          this.dispatchEvent(new MessageEvent("message", { data: event.data.fromSearch }));
        }
      });
      const add = () => document.body.append(this.frame);
      document.body ? add() : addEventListener("DOMContentLoaded", add);
    }
    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
