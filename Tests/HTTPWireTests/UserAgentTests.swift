import Expectations
import HTTPWire
import Testing

/// Which build of an app a User-Agent names.
@Suite struct UserAgentTests {
    private func build(_ lines: String...) throws -> String? {
        let text =
            (["GET / HTTP/1.1", "Host: a"] + lines).map { $0 + "\r\n" }.joined() + "\r\n"
        let bytes = Array(text.utf8)
        return try RequestHead.reading(text).fields.appBuild(bytes.span).map {
            String(decoding: bytes[$0], as: UTF8.self)
        }
    }

    @Test(arguments: [
        ("Shop/1042 CFNetwork/1410.0.3 Darwin/22.6.0", "1042"),
        ("My%20Shop/1.2.3 CFNetwork/1 Darwin/1", "1.2.3"), ("Shop/7 CFNetwork/", "7"),
    ])
    func `what Apple's URL loading system writes names the build`(value: String, build: String)
        throws
    {
        try expectEqual(self.build("User-Agent: \(value)"), build)
        try expectEqual(self.build("uSER-aGENT: \(value)", "User-Agent: x"), build)
    }

    @Test(arguments: [
        "", "Shop", "Shop/", "Shop/1042", "Shop/1042 ", "Shop/1042 CFNetwork", "/ /", "curl/8.5.0",
        "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15",
    ])
    func `another User-Agent names none`(value: String) throws {
        try expectEqual(build("User-Agent: \(value)"), nil)
        try expectEqual(build(), nil)
    }
}
