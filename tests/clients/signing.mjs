// A proxy that puts a credential on every request, for programs that cannot be given one. Arguments: its port, and the service's.

import http from "node:http";

const [port, service] = process.argv.slice(2).map(Number);
http
  .createServer((request, response) => {
    const headers = { ...request.headers, authorization: `Bearer ${process.env.JOINERY_KEY}` };
    const onward = http.request({ host: "127.0.0.1", port: service, method: request.method, path: request.url, headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    onward.on("error", () => response.destroy());
    request.pipe(onward);
  })
  .listen(port, "127.0.0.1", () => console.log("listening"));
