import Foundation
import FoundationNetworking
import PortcullisClient
import PortcullisClientTesting

guard let gateway = URL(string: CommandLine.arguments[1]) else { fatalError("no address") }
let folder = CommandLine.arguments[2]
let pem = try String(contentsOfFile: folder + "/test-authority.pem", encoding: .utf8)
let session = PortcullisSession(
    PortcullisConfiguration(gateway: gateway),
    service: try SoftwareAttestationService(
        appID: "ABCDE12345.com.example.shop",
        authority: TestAuthority(pem: pem),
        folder: URL(filePath: folder + "/device")
    ),
    store: FileEnrolmentStore(file: URL(filePath: folder + "/record"))
)
let orders = URLRequest(url: gateway.appending(path: "v1/orders"))
let (content, answer) = try await session.data(for: orders)
print(answer.statusCode, String(decoding: content, as: UTF8.self))
