import Expectations
import Rules
import Testing

@Suite struct ShareTests {
    @Test(arguments: [
        ("0%", 0), ("100%", 1_000_000), ("25%", 250_000), ("0.5%", 5_000), ("0.0001%", 1),
        ("33.3333%", 333_333), ("7.50%", 75_000), ("099%", 990_000),
    ])
    func `a percentage is read into millionths`(text: String, millionths: Int) {
        expectEqual(Share(percent: text)?.millionths, millionths)
    }

    @Test(arguments: [
        "25", "%", "", "-1%", "+5%", "100.0001%", "101%", "1000%", ".5%", "5.%", "0.00001%", "5%%",
        "5 %", " 5%", "5,0%", "1e2%", "٥%",
    ])
    func `anything else is no share`(text: String) {
        expectEqual(Share(percent: text), nil)
    }

    @Test(arguments: [0, 1, 10, 5_000, 250_000, 333_333, 999_999, 1_000_000])
    func `the text of a share reads as the share`(millionths: Int) throws {
        let share = try #require(Share(millionths: millionths))
        expectEqual(Share(percent: share.text), share)
    }

    @Test func `a share is between nothing and everything`() {
        expectEqual(Share(millionths: -1), nil)
        expectEqual(Share(millionths: 1_000_001), nil)
    }
}

@Suite struct ByteCountTests {
    @Test(arguments: [
        ("0B", 0), ("512B", 512), ("16KiB", 16_384), ("64GiB", 68_719_476_736), ("1TiB", 1 << 40),
        ("500kB", 500_000), ("2MB", 2_000_000),
    ])
    func `a size is read with its unit`(text: String, count: Int) {
        expectEqual(ByteCount(text: text)?.rawValue, count)
    }

    @Test(arguments: [
        "5", "", "KiB", "-1B", "1 KiB", "1kib", "1K", "9999999999TiB", "99999999999999999999B",
    ])
    func `a size without a known unit, or too large to count, is none`(text: String) {
        expectEqual(ByteCount(text: text), nil)
    }

    @Test(arguments: ["0B", "1B", "1023B", "1KiB", "1536B", "3MiB", "64GiB"])
    func `the text of a size reads as the size`(text: String) {
        expectEqual(ByteCount(text: text)?.text, text)
    }
}
