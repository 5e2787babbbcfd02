import Cryptography
import Encodings

/// The clients of a case, as far as its driver has to know them: which of them run, on which record,
/// and how far their clock is ahead. It writes the steps that the driver gets, each so that the
/// driver has nothing to work out.
struct DrivenClients {
    /// Where clients of a case find gateway and device.
    struct Places {
        let gateway: String
        let device: String
    }

    private let proving: ProvingCase
    private let places: Places
    private var running: Set<Int> = []
    /// The install of all clients but those that have one of their own.
    private var record = ""
    private var secondsAhead = 0.0

    init(of proving: ProvingCase, places: Places) {
        (self.proving, self.places) = (proving, places)
    }

    /// What the driver is told, one after the other; nothing for what the server does itself.
    ///
    /// - challenge: one that the gateway gives beside the client.
    mutating func steps(for step: CaseStep, challenge: () -> String?) -> [[String: Any]] {
        let number = step.process
        switch step.deed {
        case .start(let start): return steps(starting: start, number)
        case .send(let sending):
            return [
                told(number, "send", ["requests": requests(sending, number, challenge: challenge)])
            ]
        case .clock(let seconds):
            secondsAhead += seconds
            return running.sorted().map { told($0, "clock", ["ahead": secondsAhead]) }
        case .prewarm: return [told(number, "prewarm")]
        case .reset(let context): return [told(number, "reset", ["context": context])]
        case .signOut: return [told(number, "sign-out")]
        case .stop: return stop([number])
        default: return []
        }
    }

    /// Gives up all that run: nothing of a case reaches the next.
    mutating func stopAll() -> [[String: Any]] { stop(running) }

    private mutating func stop(_ numbers: Set<Int>) -> [[String: Any]] {
        let stopped = numbers.intersection(running)
        running.subtract(stopped)
        return stopped.sorted().map { told($0, "stop") }
    }

    private mutating func steps(starting start: ClientStart, _ number: Int) -> [[String: Any]] {
        let stops = stop(start.state == .new ? running : [number])
        running.insert(number)
        let fresh = "\(proving.file)-\(RandomBytes.word())"
        if start.state == .new { record = fresh }
        let members: [String: Any?] = [
            "gateway": places.gateway, "device": places.device, "app": ProvingDevice.appID,
            "package": ProvingDevice.package,
            "record": start.state == .another ? fresh : record, "ahead": secondsAhead,
            "supported": start.isSupported, "plan": start.plan, "sessions": start.sessions,
            "context": start.context,
        ]
        return stops + [told(number, "start", members)]
    }

    /// Each request as it is to be sent.
    private func requests(
        _ sending: ClientSending,
        _ number: Int,
        challenge: () -> String?
    ) -> [[String: Any]] {
        let content = sending.content.map { bytes in
            // Other bytes than text hold no name of a challenge.
            guard let text = String(validating: bytes, as: UTF8.self), text.contains("{challenge}")
            else { return bytes }
            return Array(text.replacing("{challenge}", with: challenge() ?? "").utf8)
        }
        return ([number] + sending.beside).flatMap { client in
            (0..<sending.count).map { index in
                func filled(_ text: String) -> String { text.replacing("{n}", with: "\(index)") }
                var request: [String: Any] = [
                    "process": client, "method": sending.method, "path": filled(sending.path),
                    "fields": sending.fields.map { [$0.name, filled($0.value)] },
                ]
                request["content"] = content.map { Base64.text($0) }
                return request
            }
        }
    }

    private func told(
        _ number: Int,
        _ deed: String,
        _ members: [String: Any?] = [:]
    ) -> [String: Any] {
        members.compactMapValues { $0 }
            .merging(["case": proving.path, "do": deed, "process": number]) { $1 }
    }
}
