// Plays everything around a client, and judges the client by what arrives.
//
//     driver ──/next──▶ ProvingServer ── CaseRun: the steps of a case, one after the other
//                                            │
//     client ──▶ middle ──▶ gateway ──▶ origin      a ProvingStand for each case, on its own ports
//       └──────▶ device
//
//   Cases/    what a case is, and how its file is read
//   Stand/    the parts around the client, and the ProvingLedger of what they see
//   Run/      the driver's protocol, and what follows from a case's expectations
//   Report/   the table, the JSON and the page
//
// The gateway is the program itself, so that a client meets the gateway's own wire. Devices are
// made of software. The page for people is Sources/client/docs/proving.md.
