import Expectations
import Testing
import Verification

@Suite struct AppVersionTests {
    @Test(arguments: [
        "1", "1042", "1.2.3", "2026.11.22", "1.0b2-rc_3+7", "123456789012345678901234",
    ])
    func `a version reads and writes the same`(text: String) throws {
        let version = try #require(AppVersion(text))
        expectEqual(version.text, text)
        let bytes = Array("x\(text)y".utf8)
        expectEqual(AppVersion(bytes.span, 1..<bytes.count - 1), version)
    }

    @Test(arguments: [
        "", " ", "1 2", "1\n", "<img>", "\"", "1/2", "é", "\0", "1\0", "1234567890123456789012345",
    ])
    func `what could mean something to a page or a log is no version`(text: String) {
        expectEqual(AppVersion(text), nil)
        let bytes = Array(text.utf8)
        expectEqual(AppVersion(bytes.span, 0..<bytes.count), nil)
    }

    @Test func `what the device has signed goes before what the client claims`() throws {
        let (old, new) = (try #require(AppVersion("1")), try #require(AppVersion("2")))
        expectEqual(AppBuild(signed: new, claimed: old), AppBuild(.signed, new))
        expectEqual(AppBuild(signed: nil, claimed: old), AppBuild(.claimed, old))
        expectEqual(AppBuild(signed: nil, claimed: nil), AppBuild(.none, nil))
    }
}
