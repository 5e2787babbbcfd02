import Encodings
import Telemetry

/// The calls to one host or service of a party, and its breaker.
package struct CallLineFacts: Sendable {
    /// What names it among those of the party.
    package var labels: [(String, String)]
    /// Calls that wait.
    package var waiting: Int
    package var underWay: Int
    /// One of the words for a breaker.
    package var breaker: String

    package init(labels: [(String, String)], waiting: Int, underWay: Int, breaker: String) {
        self.labels = labels
        self.waiting = waiting
        self.underWay = underWay
        self.breaker = breaker
    }

    /// Writes the members of an element of a list of `/status`.
    func write(into out: inout JSONWriter) {
        for (name, value) in labels { out.member(name, value) }
        out.member("breaker", breaker)
        out.member("calls_waiting", waiting)
        out.member("calls_under_way", underWay)
    }
}

extension [CallLineFacts] {
    /// Writes the metrics of a party.
    ///
    /// - party: the first word of their names.
    /// - noun: what each of the lines is called.
    /// - breakers: the words for a breaker.
    func write(
        into out: inout Exposition,
        of party: String,
        each noun: String,
        _ breakers: [String]
    ) {
        let waiting = "\(party)_calls_waiting"
        out.metric(waiting, type: "gauge", help: "Calls that wait for their turn.")
        for line in self { out.sample(waiting, line.labels, line.waiting) }
        let underWay = "\(party)_calls_under_way"
        out.metric(underWay, type: "gauge", help: "Calls without their answer yet.")
        for line in self { out.sample(underWay, line.labels, line.underWay) }
        let breaker = "\(party)_breaker"
        out.metric(
            breaker,
            type: "gauge",
            help: "1 for the state that a \(noun)'s breaker is in; open: the \(noun) is left alone."
        )
        for line in self {
            for state in breakers {
                let labels = line.labels + [("state", state)]
                out.sample(breaker, labels, line.breaker == state ? 1 : 0)
            }
        }
    }
}
