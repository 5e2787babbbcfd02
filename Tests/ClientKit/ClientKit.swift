// What the tests of the app's half share: a device that fails as a script says, a network that
// does, and a clock that tests move.
//
//   ScriptedAttestationService   counts keys made, attestations requested and assertions
//   ScriptedDeviceTokenService   counts the tokens that it makes
//   ScriptedTransport            fails, loses answers, and writes down what passes
//   ScriptedStore                fails, and says wrong things about what it did
//   ShiftedClock                 the time of day, moved forward at will
//   Latch                        holds tasks until a test lets them go
//
// Tests/portcullis-app is an app in a process of its own, made from the same parts.
