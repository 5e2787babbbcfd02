package import Encodings
package import Telemetry

/// What operators read of a party that the gateway asks.
package protocol PartyFacts: Sendable {
    /// Writes the metrics. A family of metrics is there without samples, too.
    func write(into out: inout Exposition)
    /// Writes members of `/status`.
    func write(into out: inout JSONWriter)
}

extension PartyFacts {
    package func write(into out: inout JSONWriter) {}
}
