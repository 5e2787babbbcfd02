import Expectations
import Foundation
import Testing

@testable import PortcullisClient

/// What an app's log shows of errors and events.
@Suite struct PrintingTests {
    private static let errors: [any Error] =
        [
            PortcullisError.urlUnfit, .contentUnreadable, .contentChanged, .contentTooLarge,
            .answerUnfit, .answerTooLarge, .contextUnfit, .keysExhausted,
        ] + AttestationServiceError.allCases as [any Error] + [
            SigningPlanError.malformed("no object."), SigningPlanError.version(2),
            SigningPlanError.unknown(rule: "a", value: "b"),
        ]
    private static let keyID = "7cR3Qdoqb3ZBtqK+8nDSauQyWAVs3Y0a+yS8BAKuXHU="
    private static let time = Date(timeIntervalSince1970: 1_800_000_000)
    private static let causes: [EnrolmentHold.Cause] = [
        .appleUnavailable, .serviceFailed(.invalidInput), .throttled, .gatewayUnavailable,
        .keysLost, .dailyCap, .contextUnfit, .refused(reason: "app-mismatch"),
    ]
    private static let absences: [SentProof.Absence] = [
        .notAsked, .otherOrigin, .routeUnknown, .unsupported, .serviceFailed(.invalidKey),
        .enrolling, .enrolmentHeld(EnrolmentHold(.dailyCap, until: time)), .challengeUnavailable,
        .storeUnavailable, .requestUnfit, .closed,
    ]
    private static let tokens: [DeviceTokenOutcome] = [
        .notAsked, .sent, .failed(.serverUnavailable), .keptBack,
    ]
    private static let events: [PortcullisEvent] =
        [
            .keyGenerated(keyID: keyID), .attestationRequested(keyID: keyID),
            .enrolled(keyID: keyID), .keyForgotten(keyID: keyID, reason: "key-revoked"),
            .signingDelayed(until: time), .sessionOpened,
            .refused(GatewayRefusal(reason: "key-unknown", next: .signAgain)),
            .routeLearned(route: "GET api.example.com/orders/*"), .storeFailed, .storeContended,
            .planFetched, .planIgnored(.version(2)), .planUnavailable(until: time),
        ] + causes.map { .enrolmentHeld(EnrolmentHold($0, until: time)) }
        + absences.map { .unproven($0) } + tokens.map { .withoutDeviceToken($0) }

    private func isSentence(_ text: String) -> Bool {
        text.first?.isUppercase == true && text.hasSuffix(".") && !text.contains("PortcullisClient")
            && !text.contains("(")
    }

    @Test func `every error reads as a sentence`() {
        for error in Self.errors { #expect(isSentence(error.localizedDescription), "\(error)") }
        expectEqual(Set(Self.errors.map(\.localizedDescription)).count, Self.errors.count)
    }

    @Test func `every event prints as a sentence, without the name of a type or a key`() {
        for event in Self.events {
            #expect(isSentence("\(event)"), "\(event)")
            #expect(!"\(event)".contains(Self.keyID))
        }
    }

    @Test func `a logger gets every event of a session`() async throws {
        let logged = Guarded<[PortcullisEvent]>([])
        let bench = try Bench { $0.log = { event in logged.withLock { $0.append(event) } } }
        let events = bench.session.events
        _ = try await bench.session.data(for: Bench.request("/a"))
        await bench.session.close()
        let all = await events.reduce(into: [PortcullisEvent]()) { $0.append($1) }
        expectEqual(logged.withLock { $0 }, all)
        expectEqual(all.count, 3)
    }
}
