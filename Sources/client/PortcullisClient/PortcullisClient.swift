// The app's half of Portcullis: it enrols the device's key once, and signs each request as the
// gateway's rules ask.
//
// ``PortcullisSession`` is what an app uses. Its parts, each in a folder:
//
//   Service    what makes keys, signs, and makes device tokens: Apple's services on a device,
//              software elsewhere
//   Store      where the record about the key is kept
//   Enrolment  from no key to an enrolled one, a pure machine and the actor that drives it
//   Plan       what a route asks to be signed: shipped with the app, or learned from answers
//   Wire       what the gateway says: the 401's field, App-Attest-Next, problem documents
//   Proving    challenges, sessions, and the bytes that are signed
//   Sending    one request's life, a pure machine, and the transport below it
//
// Nothing here decides about a request. What can't be proven is sent without proof, and the
// gateway's rule says what that is worth.
