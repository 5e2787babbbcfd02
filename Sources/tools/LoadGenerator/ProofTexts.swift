/// What goes into a request to prove it, as texts.
struct ProofTexts: Sendable {
    var keyID: [UInt8] = []
    var assertion: [UInt8] = []
    var challenge: [UInt8] = []
}
