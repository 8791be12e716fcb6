// Starts Portkey's gateway on a free port of the loopback interface, writes its URL as a
// line, and ends when standard input does.
import net from "node:net";

// The gateway would listen on all interfaces and write for people.
const write = process.stdout.write.bind(process.stdout);
process.stdout.write = (...args) => process.stderr.write(...args);
console.clear = () => {};
const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function () {
  this.once("listening", () => write(`http://127.0.0.1:${this.address().port}\n`));
  return listen.call(this, 0, "127.0.0.1");
};
process.stdin.resume().on("end", () => process.exit());
process.argv.push("--headless");
await import("../node_modules/@portkey-ai/gateway/build/start-server.js");
