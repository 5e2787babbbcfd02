import ByteCoding
import Foundation
import TestSupport

/// The genuine assertions, as these tests read them.
enum SharedAssertions {
    struct Vector: Decodable, Sendable {
        let id: String
        let appId: String
        let keyId: String
        let publicKeyX963B64: String
        let assertionB64: String
        let clientDataB64: String
        let counter: UInt32

        /// The key as `keys import` takes it, before it made this assertion.
        var importLine: String {
            #"{"key_id":"\#(keyId)","app_id":"\#(appId)","environment":"production","#
                + #""public_key":"\#(publicKeyX963B64)","counter":\#(counter - 1)}"#
        }

        var fields: [(name: String, value: String)] {
            [("App-Attest-Key-Id", keyId), ("App-Attest-Assertion", assertionB64)]
        }

        func clientData() throws -> [UInt8] {
            guard let octets = Base64.decode(clientDataB64) else {
                throw ChildProcess.Failure(description: "\(id): client_data_b64")
            }
            return octets
        }
    }

    static let all: [Vector] = SharedVectorFiles.load("assertions")
}
