// Signs webhooks with npm's standardwebhooks; the argument is the folder with node_modules.
// Reads a JSON list of {secret, id, seconds, body} from standard input, writes the list of signatures.
const { readFileSync } = require("node:fs");
const { Webhook } = require(require.resolve("standardwebhooks", { paths: [process.argv[2]] }));

const messages = JSON.parse(readFileSync(0, "utf8"));
const sign = ({ secret, id, seconds, body }) =>
  new Webhook(secret).sign(id, new Date(seconds * 1000), body);
process.stdout.write(JSON.stringify(messages.map(sign)));
