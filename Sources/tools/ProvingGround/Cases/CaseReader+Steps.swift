import ConfigurationReading
import Encodings
import Verification

// The steps of a case's file.
extension CaseReader {
    private static let deeds = [
        "start", "send", "clock", "prewarm", "reset", "sign-out", "stop", "gateway", "rules",
        "middle", "origin", "device", "lose-keys", "wait", "until",
    ]

    func step(_ node: SourceNode, _ path: String) -> CaseStep? {
        let keys = Self.deeds + ["process", "expect", "within"]
        guard let reader = MappingReader(node, path, keys: keys, log: log) else { return nil }
        let named = Self.deeds.filter { reader.has($0) }
        guard named.count == 1, let name = named.first else {
            let use = "one of \(Self.deeds.joined(separator: ", "))"
            log.error(node.place, path, found: "\(named.count) things to do", use: use)
            return nil
        }
        guard let deed = deed(reader, name) else { return nil }
        return CaseStep(
            deed: deed,
            process: reader.integer("process", in: 1...8)?.value ?? 1,
            expected: expectations(reader, "expect"),
            line: node.place.line
        )
    }

    private func deed(_ reader: MappingReader, _ name: String) -> CaseStep.Deed? {
        switch name {
        case "start": return start(reader)
        case "send": return send(reader)
        case "clock": return number(reader, name).map { .clock($0) }
        case "prewarm": return .prewarm
        case "reset": return .reset(context: context(reader))
        case "sign-out": return .signOut
        case "stop": return .stop
        case "gateway": return word(reader, name).map { .gateway($0) }
        case "rules": return .rules(rules(reader))
        case "middle": return .middle(faults(reader, name, of: .middle))
        case "origin": return .origin(faults(reader, name, of: .origin))
        case "device": return .device(faults(reader, name, of: .device))
        case "lose-keys": return .loseKeys
        case "wait": return number(reader, name).map { .wait($0) }
        default:
            return .until(expectations(reader, name), within: number(reader, "within") ?? 10)
        }
    }

    private func word<Word>(_ reader: MappingReader, _ key: String) -> Word?
    where Word: RawRepresentable<String> & CaseIterable {
        reader.word(key, Word.self)?.value
    }

    private func start(_ reader: MappingReader) -> CaseStep.Deed? {
        let keys = ["state", "supported", "plan", "sessions", "context"]
        guard let inner = reader.inner("start", keys: keys) else { return nil }
        var start = ClientStart()
        start.state = word(inner, "state") ?? .new
        start.isSupported = inner.flag("supported")?.value ?? true
        start.plan = inner.flag("plan")?.value ?? false
        start.sessions = inner.flag("sessions")?.value ?? false
        start.context = text(inner, "context")
        return .start(start)
    }

    private func send(_ reader: MappingReader) -> CaseStep.Deed? {
        let keys = ["method", "path", "fields", "content", "bytes", "count", "beside"]
        guard let inner = reader.inner("send", keys: keys) else { return nil }
        var sending = ClientSending()
        sending.path = text(inner, "path") ?? sending.path
        sending.content = text(inner, "content").map { Array($0.utf8) } ?? bytes(inner)
        sending.method = text(inner, "method") ?? (sending.content == nil ? "GET" : "POST")
        sending.fields = fields(inner, "fields")
        sending.count = inner.integer("count", in: 1...1000)?.value ?? 1
        sending.beside = texts(inner, "beside").compactMap { text in
            guard let process = Int(text), (1...8).contains(process) else {
                inner.error("beside", found: "\"\(text)\"", use: "numbers of clients, 1...8")
                return nil
            }
            return process
        }
        return .send(sending)
    }

    /// Content that is no text, in base64.
    private func bytes(_ reader: MappingReader) -> [UInt8]? {
        guard let text = text(reader, "bytes") else { return nil }
        let bytes = Base64.decode(text)
        if bytes == nil { reader.error("bytes", found: "\"\(text)\"", use: "base64") }
        return bytes
    }

    private func context(_ reader: MappingReader) -> String? {
        guard case .mapping = reader.node("reset")?.content else { return nil }
        return reader.inner("reset", keys: ["context"]).flatMap { text($0, "context") }
    }

    // MARK: Faults

    /// The parts that can have faults, with what each can do.
    enum FaultyPart {
        case middle, origin, device

        var deeds: [PlayedFault.Deed] {
            switch self {
            case .middle: PlayedFault.Deed.allCases.filter { $0 != .fail }
            case .origin: [.answer, .delay, .hang, .cut]
            case .device: [.fail, .delay, .hang]
            }
        }
    }

    func faults(_ reader: MappingReader, _ key: String, of part: FaultyPart) -> [PlayedFault] {
        guard let node = reader.node(key) else { return [] }
        // An empty list, or nothing, ends the faults.
        if case .nothing = node.content { return [] }
        if case .list(let nodes) = node.content, nodes.isEmpty { return [] }
        let nodes = reader.list(key, of: "faults") ?? []
        return nodes.compactMap { fault($0.node, $0.keyPath, of: part) }
    }

    private static let faultKeys = [
        "at", "do", "method", "proof", "platform", "status", "fields", "names", "content",
        "reason", "seconds", "run", "error", "late", "after", "every", "times",
    ]

    private func fault(_ node: SourceNode, _ path: String, of part: FaultyPart) -> PlayedFault? {
        guard let reader = MappingReader(node, path, keys: Self.faultKeys, log: log) else {
            return nil
        }
        let words = part.deeds.map(\.rawValue)
        guard let name = text(reader, "do") ?? (reader.has("error") ? "fail" : nil),
            let deed = part.deeds.first(where: { $0.rawValue == name })
        else {
            reader.error(
                "do",
                found: text(reader, "do") ?? "nothing",
                use: words.joined(separator: " | ")
            )
            return nil
        }
        var fault = PlayedFault(deed: deed)
        if let at = text(reader, "at") {
            guard let place = place(at, part) else {
                let known =
                    part == .device ? PlayedDeviceCall.allCases.map(\.rawValue) : FaultPlace.words
                let use = (known + (part == .device ? [] : ["a path"])).joined(separator: " | ")
                reader.error("at", found: "\"\(at)\"", use: use)
                return nil
            }
            fault.place = place
        }
        fault.method = text(reader, "method")
        fault.hasProof = reader.flag("proof")?.value
        fault.platform = word(reader, "platform")
        fault.status = reader.integer("status", in: 200...599)?.value ?? 200
        fault.fields = fields(reader, "fields")
        fault.names = texts(reader, "names")
        fault.content = text(reader, "content") ?? ""
        fault.reason = text(reader, "reason") ?? ""
        if deed == .refuse, Refusal(rawValue: fault.reason) == nil {
            reader.error("reason", found: "\"\(fault.reason)\"", use: "a reason of the gateway's")
        }
        fault.seconds = number(reader, "seconds") ?? 0
        fault.runs = reader.flag("run")?.value ?? false
        fault.error = text(reader, "error") ?? ""
        fault.isLate = reader.flag("late")?.value ?? false
        fault.after = reader.integer("after", in: 0...10_000)?.value ?? 0
        fault.every = reader.integer("every", in: 1...10_000)?.value ?? 1
        fault.times = reader.integer("times", in: 1...10_000)?.value ?? .max
        return fault
    }

    private func place(_ text: String, _ part: FaultyPart) -> FaultPlace? {
        guard part == .device else { return FaultPlace(text) }
        return PlayedDeviceCall(rawValue: text).map { .device($0) }
    }
}
