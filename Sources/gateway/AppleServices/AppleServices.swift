// What the gateway asks Apple's servers, as values and machines without I/O, clock or lock.
//
//   AppleService     what is asked: a receipt's renewal, or one of DeviceCheck's three calls
//   AppleCall        one call: service, environment, credential, body, how long it may take
//   AppleReply       what became of it: an answer, nothing sent, or an unknown end
//   AppleFault       why there is no answer; its raw values are labels of metrics
//   AppleCalling     where calls are handed in
//
// `Gateway/AppleDesk` performs what these decide: it owns the queue, the token and the connections.
