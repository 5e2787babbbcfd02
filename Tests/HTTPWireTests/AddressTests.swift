import Expectations
import HTTPWire
import Testing

struct AddressTests {
    @Test(arguments: [
        ("192.0.2.1", "192.0.2.1"), ("0.0.0.0", "0.0.0.0"), ("255.255.255.255", "255.255.255.255"),
        ("::", "::"), ("::1", "::1"), ("1::", "1::"), ("2001:DB8::0:1", "2001:db8::1"),
        ("2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"), ("1:0:0:2:0:0:0:3", "1:0:0:2::3"),
        ("2001:0:0:1:0:0:0:1", "2001:0:0:1::1"), ("::ffff:192.0.2.1", "192.0.2.1"),
        ("64:ff9b::192.0.2.33", "64:ff9b::c000:221"), ("1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"),
    ])
    func `an address is read and written in its canonical form`(_ source: String, _ text: String) {
        expectEqual(IPAddress(source)?.text, text)
    }

    @Test(arguments: [
        "", "1", "1.2.3", "1.2.3.4.5", "256.1.1.1", "01.2.3.4", "1.2.3.4 ", "1.2.3.+4", ":", ":::",
        "1::2::3", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "12345::", "::1%eth0", "[::1]", "::1:",
        ":1::", "1:2:3:4:5:6:7:8::", "::1.2.3", "1.2.3.4::", "::1.2.3.4:5", "1:2:3:4:5:6:7:1.2.3.4",
    ])
    func `what is no address is none`(_ source: String) {
        expectEqual(IPAddress(source), nil)
    }

    @Test(arguments: [
        ("10.0.0.0/8", "10.255.0.1", true), ("10.0.0.0/8", "11.0.0.1", false),
        ("0.0.0.0/0", "1.2.3.4", true), ("192.0.2.1", "192.0.2.1", true),
        ("192.0.2.1/32", "192.0.2.2", false), ("2001:db8::/32", "2001:db8:ffff::1", true),
        ("2001:db8::/32", "2001:db9::1", false), ("::/0", "::1", true), ("::/0", "1.2.3.4", false),
        ("::1/128", "::1", true), ("2001:db8:0:0:8000::/65", "2001:db8::8000:0:0:1", true),
        ("2001:db8:0:0:8000::/65", "2001:db8::1", false), ("10.0.0.0/8", "::ffff:10.1.1.1", true),
    ])
    func `a network holds its addresses`(_ network: String, _ address: String, _ is: Bool) throws {
        let network = try #require(IPNetwork(network))
        try expectEqual(network.contains(#require(IPAddress(address))), `is`)
    }

    @Test(arguments: [
        "10.0.0.0/33", "10.0.0.1/8", "10.0.0.0/", "10.0.0.0/+8", "x/8", "::1/129", "",
    ])
    func `what is no network is none`(_ source: String) {
        expectEqual(IPNetwork(source), nil)
    }
}
