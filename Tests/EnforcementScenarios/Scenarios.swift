import LoopbackKit
import Testing

// What the gateway promises, with the real program between a client and an origin.
//
// Each scenario has a folder, a configuration and processes of its own, and takes ports that the
// system gives; those with another proxy in front share theirs. They run one after the other: some
// measure what a kill in the middle of load leaves behind.

/// All scenarios. They need the program `portcullis` beside the bundle of the tests.
@Suite(.serialized, .enabled(if: Scenario.isPossible))
enum Scenarios {}
