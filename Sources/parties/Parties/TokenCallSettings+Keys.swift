import Rules
package import SettingsReading

extension TokenCallSettings: Declared {
    package static let keys = Keys<Self> {
        Key("timeout", \.timeout, .time(.milliseconds(100) ... .seconds(30)))
            .means("Of a call, from the hand-in to the answer.")
        Key("rate", \.perSecond, .perSecond(of: "calls in a second", max: 1_000))
            .means("Calls in a second.")
        Key("concurrent", \.concurrent, .count(1...64)).means("Calls at once.")
        Key("queue", \.queue, .count(1...100_000))
            .means("Calls that wait. A further one is not made.")
        OutboundKeys.reaching(by: \.proxy)
    }
}
