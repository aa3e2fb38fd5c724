import { defineConfig } from "vite";

// Everything is served from one origin under a strict content policy: no inline script or style,
// no data: modules, and names with a hash so that they may be cached for ever.
export default defineConfig({
  base: "/",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    sourcemap: false,
    license: { fileName: "licences.txt" },
    reportCompressedSize: false,
  },
  server: { proxy: { "/v1": "http://127.0.0.1:7178", "/health": "http://127.0.0.1:7178" } },
});
