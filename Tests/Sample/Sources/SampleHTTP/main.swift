import AppAttest
import AppAttestServer
import Foundation
import Hummingbird

// The registry behind Hummingbird: built by `Tests/Sample/run --hummingbird`, to show that no name
// of this package collides with one of Hummingbird's packages.

actor Enrolments {
    private var registry = DeviceRegistry(
        app: ExpectedApp(
            id: "ABCDE12345.com.example.shop",
            environments: [.production],
            isMacOS: false,
            builds: .any
        )
    )

    func makeChallenge() -> Data { registry.makeChallenge() }

    func enrol(_ attestation: Data, keyID: String, challenge: Data) throws -> String {
        try registry.enrol(
            attestation: attestation,
            keyID: keyID,
            challenge: challenge,
            now: Date()
        ).keyID.base64
    }
}

let enrolments = Enrolments()
let router = Router()
router.post("challenges") { _, _ in await enrolments.makeChallenge().base64EncodedString() }
router.post("keys") { request, context in
    struct Enrolment: Decodable {
        let keyID: String
        let attestation: Data
        let challenge: Data
    }
    let enrolment = try await request.decode(as: Enrolment.self, context: context)
    do {
        return try await enrolments.enrol(
            enrolment.attestation,
            keyID: enrolment.keyID,
            challenge: enrolment.challenge
        )
    } catch let refusal as AttestationRefusal {
        throw HTTPError(.forbidden, message: refusal.reason.rawValue)
    }
}
// Port 0: any free one. `--once` ends at once, for the script that only wants to see it start.
let application = Application(
    router: router,
    configuration: .init(address: .hostname("127.0.0.1", port: 0))
)
if !CommandLine.arguments.contains("--once") { try await application.runService() }
print("hummingbird: started")
