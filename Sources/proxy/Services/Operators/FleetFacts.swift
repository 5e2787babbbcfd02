package import Encodings
import Signatures
import Telemetry

/// The gateways that share a database, as one of them knows them.
package struct FleetFacts: Sendable {
    /// A gateway as it last described itself.
    package struct Gateway: Sendable {
        package let name: String
        /// The program's version.
        package var program = ""
        /// Of its first listener.
        package var address = ""
        /// Second of Unix time, by its own clock.
        package var startedAt: Int64 = 0
        /// The version of the orders that it serves.
        package var order: Int64 = 0
        /// Orders that it obeys and that the database does not have.
        package var pending: Int64 = 0
        /// SHA-256 of its rules, in hexadecimal.
        package var rules = ""
        package let standing: String
        /// Clients' open connections while it is drained.
        package var clients: Int64 = 0
        /// Seconds since it said so.
        package let age: Int64
        let isOwn: Bool

        package init(name: String, standing: String, age: Int64, isOwn: Bool) {
            (self.name, self.standing) = (name, standing)
            (self.age, self.isOwn) = (age, isOwn)
        }

        /// Whether its process has ended by itself.
        package var hasEnded: Bool { standing == "ended" }

        /// Whether it serves, and has written its row lately.
        package var isHeard: Bool { age <= FleetFacts.silenceMax && !hasEnded }

        /// One line: name, what it does, version of the orders, rules, program, address, age.
        package var line: String {
            let silence = hasEnded ? " \(age) s ago" : isHeard ? "" : " (not heard of for \(age) s)"
            let open = standing == "drained" ? ", \(clients) connections" : ""
            let waiting = pending > 0 ? ", \(pending) pending" : ""
            return "\(name)\t\(standing)\(open)\(silence)\torder \(order)\(waiting)\trules "
                + "\(rules.prefix(8))\t\(program)\t\(address)\n"
        }
    }

    /// What a gateway has told operators at other gateways, asked or unasked, since its start.
    package struct Answers: Sendable {
        package var saved: UInt64 = 0
        /// The database did not take them.
        package var lost: UInt64 = 0

        package init() {}
    }

    /// The time after which a gateway that has not written its row counts as silent, in seconds.
    package static let silenceMax: Int64 = 10

    /// This gateway's name.
    let gateway: String
    /// The version of the orders that it serves.
    let order: Int64
    /// Orders that it obeys and that the database does not have.
    let pending: Int
    /// Seconds since the database has last answered; `nil` before it has.
    let silence: Int64?
    package var gateways: [Gateway] = []
    package var answers = Answers()

    package init(gateway: String, order: Int64, pending: Int, silence: Int64?) {
        (self.gateway, self.order, self.pending) = (gateway, order, pending)
        self.silence = silence
    }

    private var heard: [Gateway] { gateways.filter(\.isHeard) }

    /// Whether gateways that serve now have different rules.
    package var rulesDiffer: Bool { Set(heard.map(\.rules)).count > 1 }

    /// Gateways that have not said that they end, and have written nothing for too long. The row of
    /// a dead process is ignored once another process uses its name.
    package var silent: [Gateway] {
        gateways.filter { gateway in
            !gateway.isHeard && !gateway.hasEnded
                && !heard.contains {
                    $0.name == gateway.name && $0.startedAt >= gateway.startedAt
                }
        }
    }

    /// Writes the metrics. The families exist on every gateway; without a fleet they have no
    /// samples.
    static func write(_ facts: FleetFacts?, into out: inout Exposition) {
        out.gauge(
            "fleet_order_version",
            facts?.order,
            help: "The version of the fleet's orders that this gateway serves; "
                + "absent without a fleet."
        )
        out.gauge(
            "fleet_orders_pending",
            facts?.pending,
            help: "Orders that this gateway obeys and that the fleet's database does not have yet."
        )
        out.gauge(
            "fleet_silence_seconds",
            facts?.silence,
            help: "Time since the fleet's database has last told this gateway of orders."
        )
        out.gauge(
            "fleet_gateways",
            facts?.heard.count,
            help: "Gateways of the fleet that this one has heard of in the last ten seconds."
        )
        out.gauge(
            "fleet_rules_differ",
            facts.map { $0.rulesDiffer ? 1 : 0 },
            help: "1 while gateways of the fleet serve different rules."
        )
        out.metric(
            "fleet_answers_total",
            type: "counter",
            help: "Reports and refusals that this gateway has written for operators at others."
        )
        guard let answers = facts?.answers else { return }
        out.sample("fleet_answers_total", labels: [("result", "saved")], answers.saved)
        out.sample("fleet_answers_total", labels: [("result", "lost")], answers.lost)
    }

    /// Writes the fleet for `/status`.
    func write(into out: inout JSONWriter) {
        out.object("fleet") { out in
            out.member("gateway", gateway)
            out.member("order", order)
            out.member("orders_pending", pending)
            out.member("silence_seconds", silence.map { JSONValue.number($0) } ?? .null)
            out.member("rules_differ", rulesDiffer)
            out.objects("gateways", of: gateways) { out, gateway in
                gateway.write(into: &out)
                out.member("self", gateway.isOwn)
            }
        }
    }
}

extension FleetFacts.Gateway {
    /// Its members in `/status` and in `fleet status --json`.
    package func write(into out: inout JSONWriter) {
        out.member("name", name)
        out.member("standing", standing)
        if standing == "drained" { out.member("connections_open", clients) }
        out.member("age_seconds", age)
        out.member("order", order)
        out.member("orders_pending", pending)
        out.member("rules_digest", rules)
        out.member("version", program)
        out.member("address", address)
        out.member("started_at", UnixTime(seconds: startedAt).iso8601)
    }
}
