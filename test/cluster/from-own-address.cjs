/**
 * Preloaded into a server (`--require`): its connections to 127.0.0.1 come from FROM_ADDRESS, another address of loopback,
 * so that a proxy knows whose they are. All of 127.0.0.0/8 is this machine's on Linux; elsewhere nothing is changed.
 */
const { Socket } = require("node:net");

const localAddress = process.env.FROM_ADDRESS;
const connect = Socket.prototype.connect;

if (process.platform === "linux" && localAddress !== undefined) {
  Socket.prototype.connect = function connectFrom(...args) {
    // The module of sockets passes what it has normalized: a list of the options and the listener.
    const options = Array.isArray(args[0]) ? args[0][0] : args[0];
    if (typeof options === "object" && options !== null && options.port !== undefined) {
      if (options.host === "127.0.0.1" || options.host === "localhost") {
        options.localAddress ??= localAddress;
        options.host = "127.0.0.1";
      }
    }
    return connect.apply(this, args);
  };
}
