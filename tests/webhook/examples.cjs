// Writes every payload of npm's @octokit/webhooks-examples as a JSON list of {event, body, signature},
// signed by Node's own HMAC as GitHub signs. Arguments: the folder with node_modules, the secret.
const { createHmac } = require("node:crypto");
const [folder, secret] = process.argv.slice(2);
const events = require(require.resolve("@octokit/webhooks-examples", { paths: [folder] }));

const signed = ({ name, examples }) =>
  examples.map((example) => {
    const body = JSON.stringify(example);
    const signature = `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`;
    return { event: name, body, signature };
  });
process.stdout.write(JSON.stringify((events.default ?? events).flatMap(signed)));
