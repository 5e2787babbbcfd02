// The part of swift-openapi-runtime 1 that PortcullisTransport, PortcullisMiddleware and a
// generated client use, with the signatures of its documentation. That package can't be fetched
// where this one is built. HTTPTypes, which its signatures name, can.
//
//   ClientTransport, ClientMiddleware, HTTPBody   what an app sees
//   UniversalClient, Converter                    what generated code calls
