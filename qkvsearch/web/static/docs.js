// Swagger UI over the server's own description of its API.
import { begin } from "./shell.js";
import { storedToken } from "./token.js";
import { facts } from "./words.js";

document.documentElement.classList.toggle("dark-mode", matchMedia("(prefers-color-scheme: dark)").matches);
begin();
const ui = window.SwaggerUIBundle({
  url: `${facts.root}/openapi.json`,
  domNode: document.getElementById("page"),
  deepLinking: true,
  displayRequestDuration: true,
  tryItOutEnabled: true,
  defaultModelsExpandDepth: 0,
  validatorUrl: null,
  onComplete: () => storedToken() && ui.preauthorizeApiKey("token", storedToken()),
});
