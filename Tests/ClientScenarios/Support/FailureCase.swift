import ClientKit
import Foundation
import PortcullisClient
import Services
import Verification

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Something that fails on the way to a proven request, and what it is to cost.
struct FailureCase: Sendable {
    typealias Script = @Sendable (ClientStand) throws -> Void

    /// What fails, as the guide's table says it.
    let name: String
    /// Where it fails, and how often: cases that cost the same there are one row of the table.
    /// Empty for a row of its own.
    private(set) var place = ""
    private(set) var often = ""
    /// Where the app's request goes.
    private(set) var path = ClientStand.order
    /// Makes it fail.
    let script: Script
    /// What happens once a request was proven; then a second one is sent.
    let later: Script?

    private init(_ name: String, _ script: @escaping Script = { _ in }) {
        (self.name, self.script, later) = (name, script, nil)
    }

    private init(_ name: String, script: @escaping Script = { _ in }, later: @escaping Script) {
        (self.name, self.script, self.later) = (name, script, later)
    }

    static let all: [FailureCase] =
        [FailureCase("nothing")] + device + apple + assertions + gateway + stores

    private static let device =
        errors(of: .generateKey) + [
            FailureCase("`isSupported` is false") { $0.service.isSupported = false }
        ]

    private static let apple =
        errors(of: .attestKey) + [
            FailureCase("`attestKey`: `serverUnavailable`, five times") { stand in
                let fail = ScriptedAttestationService.Step.fail(.serverUnavailable)
                stand.service.next(.attestKey, fail, fail, fail, fail, fail)
            },
            FailureCase("`attestKey`: the answer is lost") { stand in
                stand.service.next(.attestKey, .workButFail(.serverUnavailable))
            },
        ]

    private static let assertions =
        errors(of: .generateAssertion) + [
            FailureCase("the device lost its keys", later: { $0.service.loseKeys() })
        ]

    private static let gateway = [
        FailureCase("the gateway is killed before `…/challenges`") { stand in
            let gateway = stand.gateway
            stand.transport.next(ClientStand.challenges, .run { try gateway.restart() })
        },
        FailureCase("the gateway is killed before `…/keys`") { stand in
            let gateway = stand.gateway
            stand.transport.next(ClientStand.keys, .run { try gateway.restart() })
        },
        FailureCase("the gateway loses its store before `…/keys`") { stand in
            let gateway = stand.gateway
            stand.transport.next(ClientStand.keys, .run { try gateway.restart(wipingStore: true) })
        },
        FailureCase(
            "the gateway is killed later",
            later: { try $0.gateway.restart() }
        ),
        FailureCase(
            "the gateway loses its store later",
            later: { try $0.gateway.restart(wipingStore: true) }
        ),
        FailureCase(
            "the app loses its store later",
            later: { $0.store = MemoryEnrolmentStore() }
        ),
    ]

    private static let stores = [
        FailureCase("the app's store can't be written") { stand in
            let store = ScriptedStore()
            store.always(.fail)
            stand.store = store
        },
        FailureCase("the app's store can't be written after `attestKey`") {
            failAfterAttesting($0)
        },
        FailureCase(
            "the app's store can't be written after `attestKey`; the app starts again later",
            script: { failAfterAttesting($0) },
            later: { ($0.store as? ScriptedStore)?.always(.work) }
        ),
    ]

    private static func failAfterAttesting(_ stand: ClientStand) {
        let store = ScriptedStore()
        stand.store = store
        stand.service.next(.attestKey, .runAfter { store.always(.fail) })
    }

    /// Each error of a call of the service, once and always.
    private static func errors(of call: ScriptedAttestationService.Call) -> [FailureCase] {
        AttestationServiceError.allCases.flatMap { error in
            [
                FailureCase("`\(call)`: `\(error)`, once") { $0.service.next(call, .fail(error)) },
                FailureCase("`\(call)`: `\(error)`, always") { stand in
                    stand.service.always(call, .fail(error))
                },
            ]
        }
    }
}

/// What a fickle gateway, or the network before it, does.
extension FailureCase {
    /// A place at which answers are wrong: a path, where the app's request goes, how the table
    /// calls it, and how long the client waits for its answer at most.
    private struct Place {
        let path: String
        var request = ClientStand.order
        let name: String
        var limit: Double?
    }

    private static let request = Place(path: ClientStand.order, name: "the request")
    private static let chat = Place(
        path: ClientStand.chat,
        request: ClientStand.chat,
        name: "the request in a session"
    )
    private static let challenges = Place(
        path: ClientStand.challenges,
        name: "`…/challenges`",
        limit: 10
    )
    private static let keys = Place(path: ClientStand.keys, name: "`…/keys`", limit: 10)
    private static let sessions = Place(
        path: ClientStand.sessions,
        request: ClientStand.chat,
        name: "`…/sessions`",
        limit: 5
    )

    /// A case that happens once, and one that happens always.
    private static func onceAndAlways(
        _ name: String,
        _ place: Place,
        _ step: @escaping @Sendable (ClientStand) throws -> ScriptedTransport.Step
    ) -> [FailureCase] {
        ["once", "always"].map { often in
            var failure = FailureCase(name) { stand in
                let step = try step(stand)
                if often == "once" {
                    stand.transport.next(place.path, step)
                } else {
                    stand.transport.always(place.path, step)
                }
            }
            (failure.place, failure.often) = (place.name, often)
            failure.path = place.request
            return failure
        }
    }

    /// Each disturbance of each call.
    static let disturbances: [FailureCase] = [request, challenges, keys, sessions].flatMap {
        place in
        var all = [
            onceAndAlways("not reached", place) { _ in .fail },
            onceAndAlways("the answer is lost", place) { _ in .loseAnswer },
            onceAndAlways("3 s late", place) { stand in
                let clock = stand.clock
                return .run { clock.advance(by: 3) }
            },
            onceAndAlways("sent twice on its way", place) { _ in .sendTwice },
            onceAndAlways("redirected to itself", place) { stand in
                let target = try stand.url(place.path).absoluteString
                return .answer { try answer(to: $0, 307, ["Location": target]) }
            },
            onceAndAlways("503 of something else", place) { _ in
                .answer { try answer(to: $0, 503, [:], "busy") }
            },
        ]
        if let limit = place.limit {
            all.append(
                onceAndAlways("no answer", place) { stand in
                    let clock = stand.clock
                    return .hang { clock.pass(to: clock.now.addingTimeInterval(limit)) }
                }
            )
        }
        return all.flatMap { $0 }
    }

    /// Each refusal of the gateway's where it may come, with what its table says.
    static let refusals: [FailureCase] =
        Refusal.allCases.filter { $0 != .preflight }.flatMap {
            refusal in
            let isOfSession = refusal.row.subject == .session
            let asked = refused(.refused(refusal), isOfSession ? chat : request)
            // What has the same next step is the same at the other endpoints.
            let others: [Place]
            switch refusal {
            case .requestMalformed, .appMismatch, .enrolmentThrottled, .storeUnavailable:
                others = [challenges, keys]
            default: others = isOfSession ? [] : [keys]
            }
            return asked + others.flatMap { refused(.notEnrolled(refusal), $0) }
        }
        + [
            Refusal.challengeUnknown, .keyUnknown, .assertionMalformed, .keyRevoked,
            .storeUnavailable,
        ]
        .flatMap { refused(.refused($0), sessions) }

    private static func refused(_ outcome: LocalOutcome, _ place: Place) -> [FailureCase] {
        onceAndAlways("`\(outcome.reason)`", place) { stand in
            let (clock, endpoint) = (stand.clock, try stand.url(ClientStand.challenges))
            let isOfSession = place.request == ClientStand.chat
            return .answer { request in
                let row = outcome.row
                var details = LocalResponse.Details(waitSeconds: 3)
                if row.companion == .authenticate {
                    details.signing = #"sign="method target body challenge", counter="64""#
                    if isOfSession { details.signing += #", accept="assertion session""# }
                }
                if row.nextStep == .signAgain {
                    details.challenge = try await challenge(from: endpoint)
                }
                // With half a second of jitter.
                if row.nextStep == .retryLater { clock.pass(to: clock.now.addingTimeInterval(3.5)) }
                let response = LocalResponse(outcome, details)
                var fields = ["Content-Type": "application/problem+json"]
                for (name, value) in response.fields { fields[name] = value }
                let text = String(decoding: response.content, as: UTF8.self)
                return try answer(to: request, response.status, fields, text)
            }
        }
    }

    private static func answer(
        to request: URLRequest,
        _ status: Int,
        _ fields: [String: String],
        _ text: String = ""
    ) throws -> TransportAnswer {
        guard let url = request.url,
            let response = HTTPURLResponse(
                url: url,
                statusCode: status,
                httpVersion: "HTTP/1.1",
                headerFields: fields
            )
        else { throw URLError(.badURL) }
        let pieces = AsyncStream { continuation in
            if !text.isEmpty { continuation.yield(Data(text.utf8)) }
            continuation.finish()
        }
        return TransportAnswer(
            response: response,
            content: AnswerContent {
                var iterator = pieces.makeAsyncIterator()
                return await iterator.next()
            }
        )
    }

    /// A challenge of the gateway's, for a refusal that brings one.
    private static func challenge(from endpoint: URL) async throws -> String {
        struct Answer: Decodable { let challenges: [String] }
        var request = URLRequest(url: endpoint)
        request.httpMethod = "POST"
        request.setValue("application/json", forHTTPHeaderField: "Content-Type")
        let question = Data(#"{"purpose":"assertion","count":1}"#.utf8)
        let answer = try await URLSessionTransport().send(request, content: .data(question))
        var data = Data()
        for try await piece in answer.content { data += piece }
        let challenges = try JSONDecoder().decode(Answer.self, from: data).challenges
        guard let challenge = challenges.first else { throw URLError(.badServerResponse) }
        return challenge
    }
}
