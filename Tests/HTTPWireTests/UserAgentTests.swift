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

/// Which system a User-Agent claims.
@Suite struct ClaimedSystemTests {
    private func system(_ value: String) throws -> String? {
        let bytes = Array("GET / HTTP/1.1\r\nHost: a\r\nUser-Agent: \(value)\r\n\r\n".utf8)
        return try RequestHead.reading(String(decoding: bytes, as: UTF8.self)).fields
            .claimedSystem(bytes.span)?.text
    }

    @Test(arguments: [
        ("Shop/1042 CFNetwork/3826.500.131 Darwin/25.1.0", "apple 26.1"),
        ("Shop/1042 CFNetwork/1568.200.51 Darwin/24.1.0", "apple 18.1"),
        ("Shop/1042 CFNetwork/1410.0.3 Darwin/22.6.0", "apple 16.6"),
        ("Shop/1 CFNetwork/1206 Darwin/20.1.0", "apple 14.2"),
        ("Shop/1 CFNetwork/1197 Darwin/20.0.0", "apple 14.0"),
        ("Shop/1.0 (com.example.shop; build:7; iOS 18.1.0) Alamofire/5.9.1", "ios 18.1"),
        ("Shop/1.0 (com.example.shop; build:7; macOS 15.2.0) Alamofire/5.9.1", "macos 15.2"),
        ("Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15", "ios 18.5"),
        ("Mozilla/5.0 (iPad; CPU OS 17_4 like Mac OS X) AppleWebKit/605.1.15", "ios 17.4"),
        ("Dalvik/2.1.0 (Linux; U; Android 14; Pixel 8 Build/UQ1A)", "android 14"),
        ("Shop/1 (Android 8.1.0)", "android 8.1"),
    ])
    func `a system that is named has a name of the list and a version`(
        value: String,
        system: String
    ) throws {
        try expectEqual(self.system(value), system)
    }

    @Test(arguments: [
        "", "curl/8.5.0", "okhttp/4.12.0", "Darwin/", "Darwin/x", "Darwin/2500.1", "Darwin/19.6.0",
        "xDarwin/25.1.0", "iOS", "iOS x", "Android", "kiOS 18",
        String(repeating: "x", count: 256) + " Darwin/25.1.0",
    ])
    func `where none is named with a version there is no claim`(value: String) throws {
        try expectEqual(system(value), nil)
    }

    @Test func `a version has small numbers, and nothing else of what a client writes`() throws {
        try expectEqual(system("iOS 18.99999"), "ios 18")
        try expectEqual(system("iOS 999.999.9\"<b>"), "ios 999.999")
        try expectEqual(system("iOS 18<script>"), "ios 18")
    }
}
