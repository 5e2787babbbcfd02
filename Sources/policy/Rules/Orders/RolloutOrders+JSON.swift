import Cryptography
package import Encodings

// The orders as a file keeps it:
//
//     { "version": 1,
//       "emergency": { "at": …, "by": …, "why": … },
//       "rules": [{ "id": "orders", "to": "10%", "at": …, "by": …, "why": … }],
//       "ramps": [{ "id": "orders", "ramp": "1% on … to 100% on …", "delay": 3600,
//                   "since": … }] }
//
// A ramp that goes on has `at`, `by` and `why` instead of `since`.
extension RolloutOrders {
    private static let version: Int64 = 1

    package var json: [UInt8] {
        var out = JSONWriter(.indented)
        out.object { out in
            out.member("version", Self.version)
            if let emergency { out.object("emergency") { $0.note(emergency) } }
            out.objects("rules", of: entries.sorted(by: { $0.key < $1.key })) { out, item in
                let (id, entry) = item
                out.member("id", id)
                out.member("to", entry.order.text)
                out.note(entry.note)
            }
            if !pauses.isEmpty { writePauses(into: &out) }
        }
        return out.line
    }

    private func writePauses(into out: inout JSONWriter) {
        out.objects("ramps", of: pauses.sorted(by: { $0.key < $1.key })) { out, item in
            let (id, pause) = item
            out.member("id", id)
            out.member("ramp", pause.ramp)
            out.member("delay", pause.delay)
            switch pause.state {
            case .paused(let since): out.member("since", UnixTime(seconds: since.seconds).iso8601)
            case .resumed(let note): out.note(note)
            }
        }
    }

    /// Reads what ``json`` writes, and nothing else: half of the orders may be worse than none.
    package init(json text: Span<UInt8>) throws(JSONError) {
        self.init()
        var reader = JSONReader()
        var version: Int64?
        try reader.beginObject(text)
        while let name = try reader.nextName(text) {
            switch String(decoding: name, as: UTF8.self) {
            case "version":
                guard case .number(let number) = try reader.scalar(text) else {
                    throw reader.error("version is no number")
                }
                version = number
            case "emergency": emergency = try Self.members(&reader, text).note(reader)
            case "rules":
                try reader.beginArray(text)
                while try reader.nextElement(text) {
                    let members = try Self.members(&reader, text)
                    guard let id = members["id"], let order = members["to"],
                        let order = RolloutOrder(kept: order)
                    else { throw reader.error("a rule without id, or without an order in `to`") }
                    guard entries[id] == nil, entries.count < Self.entriesMax else {
                        throw reader.error("\(id) is there twice, or there are too many rules")
                    }
                    entries[id] = Entry(order: order, note: try members.note(reader))
                }
            case "ramps":
                try reader.beginArray(text)
                while try reader.nextElement(text) {
                    try takePause(try Self.members(&reader, text), reader)
                }
            default: throw reader.error("an unknown member")
            }
        }
        try reader.end(text)
        guard version == Self.version else {
            throw reader.error("another version than \(Self.version)")
        }
    }

    private mutating func takePause(
        _ members: [String: String],
        _ reader: JSONReader
    ) throws(JSONError) {
        guard let id = members["id"], let ramp = members["ramp"],
            let delay = members["delay"].flatMap({ Int64($0) })
        else { throw reader.error("a ramp without id, ramp or delay") }
        let state: RampPause.State
        if let since = members["since"] {
            guard let time = UnixTime(iso8601: since) else {
                throw reader.error("a ramp whose `since` is no time")
            }
            state = .paused(time)
        } else {
            state = .resumed(try members.note(reader))
        }
        guard let pause = RampPause(ramp: ramp, delay: delay, state: state), pauses[id] == nil
        else {
            throw reader.error("the ramp of \(id) is there twice, or its delay is out of range")
        }
        pauses[id] = pause
    }

    fileprivate static func members(
        _ reader: inout JSONReader,
        _ text: Span<UInt8>
    ) throws(JSONError) -> [String: String] {
        var members: [String: String] = [:]
        try reader.beginObject(text)
        while let name = try reader.nextName(text) {
            let value: String
            switch try reader.scalar(text) {
            case .string(let bytes): value = String(decoding: bytes, as: UTF8.self)
            case .number(let number): value = String(number)
            case .boolean, .null: throw reader.error("a member that is neither text nor number")
            }
            members[String(decoding: name, as: UTF8.self)] = value
        }
        return members
    }
}

// The orders of a fleet, as a gateway keeps them on its disk:
//
//     { "version": 1, "order": 12, "agreed": "…", "pending": [{ "rule": "orders", "to": …,
//       "at": …, "by": …, "why": … }] }
//
// `agreed` is the text of ``RolloutOrders``. A pending order without a rule is about all.
extension FleetOrders {
    private static let version: Int64 = 1

    package var json: [UInt8] {
        var out = JSONWriter(.compact)
        out.object { out in
            out.member("version", Self.version)
            out.member("order", version)
            out.member("agreed", String(decoding: agreed.json, as: UTF8.self))
            out.objects("pending", of: pending) { out, order in
                if let rule = order.rule { out.member("rule", rule) }
                out.member("to", order.order.text)
                out.note(order.note)
            }
        }
        return out.line
    }

    /// Reads what ``json`` writes, and nothing else.
    package init(json text: Span<UInt8>) throws(JSONError) {
        var reader = JSONReader()
        var (format, number) = (Int64(0), Int64(-1))
        var agreed: RolloutOrders?
        var pending: [Pending] = []
        try reader.beginObject(text)
        while let name = try reader.nextName(text) {
            switch String(decoding: name, as: UTF8.self) {
            case "version": format = try Self.number(&reader, text)
            case "order": number = try Self.number(&reader, text)
            case "agreed":
                guard case .string(let bytes) = try reader.scalar(text) else {
                    throw reader.error("agreed is no text")
                }
                agreed = try RolloutOrders(json: bytes.span)
            case "pending":
                try reader.beginArray(text)
                while try reader.nextElement(text) {
                    let members = try RolloutOrders.members(&reader, text)
                    guard let order = members["to"].flatMap({ RolloutOrder(kept: $0) }),
                        pending.count < RolloutOrders.entriesMax
                    else { throw reader.error("an order without `to`, or too many") }
                    let note = try members.note(reader)
                    pending.append(Pending(rule: members["rule"], order: order, note: note))
                }
            default: throw reader.error("an unknown member")
            }
        }
        try reader.end(text)
        guard format == Self.version, number >= 0, let agreed else {
            throw reader.error("another version than \(Self.version), or a member is missing")
        }
        self.init(version: number, agreed: agreed, pending: pending)
    }

    private static func number(
        _ reader: inout JSONReader,
        _ text: Span<UInt8>
    ) throws(JSONError) -> Int64 {
        guard case .number(let number) = try reader.scalar(text) else {
            throw reader.error("no number")
        }
        return number
    }
}

extension RolloutOrders.Change {
    /// The line of the audit log.
    package var line: [UInt8] { line() }

    /// The line of the audit of a fleet.
    ///
    /// - order: the version of the fleet's orders that the change has made; `nil` where it has made
    ///   none.
    /// - gateway: the one that took it.
    package func line(order: Int64? = nil, gateway: String? = nil) -> [UInt8] {
        var out = JSONWriter(.compact)
        out.object { out in
            if let order { out.member("order", order) }
            if let gateway { out.member("gateway", gateway) }
            out.member("rule", rule ?? "*")
            out.member("from", from)
            out.member("to", to)
            out.note(note)
        }
        return out.line
    }
}

extension JSONWriter {
    fileprivate mutating func note(_ note: RolloutNote) {
        member("at", UnixTime(seconds: note.at.seconds).iso8601)
        member("by", note.by)
        member("why", note.why)
    }
}

extension [String: String] {
    fileprivate func note(_ reader: JSONReader) throws(JSONError) -> RolloutNote {
        guard let at = self["at"].flatMap({ UnixTime(iso8601: $0) }), let by = self["by"],
            let note = RolloutNote(at: at, by: by, why: self["why"] ?? "")
        else { throw reader.error("an order without `at` and `by`, or with a text too long") }
        return note
    }
}
