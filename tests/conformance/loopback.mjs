// Preloaded into a server that would listen on every interface: it listens on 127.0.0.1 alone.
import { Server } from 'node:net';

const listen = Server.prototype.listen;
Server.prototype.listen = function (port, ...rest) {
    return listen.call(this, Number(port), '127.0.0.1', ...rest);
};
