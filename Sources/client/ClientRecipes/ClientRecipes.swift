// Files that an app copies, to have what another library sends signed. Each stands alone and needs
// that library and PortcullisClient.
//
//   PortcullisTransport    swift-openapi-runtime: sends what a generated client asks for
//   PortcullisMiddleware   swift-openapi-runtime: signs what another transport sends
//   AlamofireSigning       Alamofire 5: interceptor and event monitor
//   ApolloSigning          Apollo 2 for GraphQL: interceptor
//
// They are recipes and no library, so that this package depends on none of the three. Here they
// are compiled against stand-ins, Tests/*StandIn, which declare what is used with the signatures
// that the libraries document, and which run: the tests send through them. Only an app compiles
// them against the libraries themselves.
//
// How they are used is in the article "Alamofire and other libraries" of the client's
// documentation.
