import Foundation

// Asks Foundation all that it answers by ICU's data, in each language that there is. Answers about
// English are printed, so that `deploy/locale-data --check` can compare a program that has all data
// with one that has a part. In another language there has to be an answer, whichever.

let date = Date(timeIntervalSince1970: 1_795_993_000)
let english: Set = ["en", "en_US", "en_US_POSIX", "en_001"]
// Identifiers of no language that there is, and with keywords.
let odd = [
    "", "C", "POSIX", "root", "xx_YY", "th_TH_TH", "en_US@rg=gbzzzz", "zh_Hant_TW@collation=stroke",
    "de_DE@calendar=buddhist;currency=JPY;collation=phonebook;numbers=thai",
    String(repeating: "a", count: 200),
]
let calendars: [Calendar.Identifier] = [
    .buddhist, .chinese, .coptic, .ethiopicAmeteAlem, .ethiopicAmeteMihret, .gregorian, .hebrew,
    .indian, .islamic, .islamicCivil, .islamicTabular, .islamicUmmAlQura, .iso8601, .japanese,
    .persian, .republicOfChina,
]

/// What was answered about one language.
struct Answers {
    var texts: [String] = []

    mutating func note(_ value: Any?) { texts.append(value.map { "\($0)" } ?? "nil") }

    mutating func askNames(_ locale: Locale) {
        note(locale.language.characterDirection)
        note(locale.decimalSeparator)
        note(locale.quotationBeginDelimiter)
        note(locale.currencySymbol)
        note(locale.measurementSystem)
        note(locale.hourCycle)
        note(locale.firstDayOfWeek)
        note(locale.availableNumberingSystems.count)
        for name in ["de", "zh_Hant_TW", locale.identifier] {
            note(locale.localizedString(forIdentifier: name))
        }
        note(locale.localizedString(forRegionCode: "DE"))
        note(locale.localizedString(forCurrencyCode: "EUR"))
        note(locale.localizedString(forScriptCode: "Latn"))
        note(locale.localizedString(for: .hebrew))
    }

    mutating func askDates(_ locale: Locale) {
        let format = DateFormatter()
        format.locale = locale
        format.timeZone = TimeZone(identifier: "Europe/Berlin")
        for style in [DateFormatter.Style.short, .medium, .long, .full] {
            (format.dateStyle, format.timeStyle) = (style, style)
            note(format.string(from: date))
            note(format.date(from: format.string(from: date)))
        }
        format.dateFormat = "yyyy-MM-dd HH:mm:ss.SSS EEEE MMMM zzzz VVVV QQQQ G"
        note(format.date(from: format.string(from: date)))
        note(DateFormatter.dateFormat(fromTemplate: "yMMMMdjm", options: 0, locale: locale))
        note(date.formatted(Date.FormatStyle(date: .complete, time: .complete, locale: locale)))
        let relative = Date.RelativeFormatStyle(presentation: .named, locale: locale)
        note(Date().addingTimeInterval(-86_400).formatted(relative))
        note(Duration.seconds(3_723).formatted(.units().locale(locale)))
        let interval = Date.IntervalFormatStyle(date: .long, time: .standard, locale: locale)
        note((date..<date.addingTimeInterval(4_000_000)).formatted(interval))
        for name in ["America/New_York", "Asia/Kolkata", "UTC"] {
            for style in [NSTimeZone.NameStyle.standard, .shortDaylightSaving, .generic] {
                note(TimeZone(identifier: name)?.localizedName(for: style, locale: locale))
            }
        }
        for identifier in calendars {
            var calendar = Calendar(identifier: identifier)
            calendar.locale = locale
            note(calendar.monthSymbols)
            note(calendar.eraSymbols)
            note(calendar.firstWeekday)
            note(calendar.dateComponents([.year, .month, .day, .weekOfYear], from: date))
            note(calendar.date(byAdding: .month, value: 1, to: date))
        }
    }

    mutating func askNumbers(_ locale: Locale) {
        let format = NumberFormatter()
        format.locale = locale
        let styles: [NumberFormatter.Style] = [
            .none, .decimal, .currency, .percent, .scientific, .spellOut, .ordinal,
            .currencyISOCode, .currencyPlural, .currencyAccounting,
        ]
        for style in styles {
            format.numberStyle = style
            note(format.string(from: 1_234_567.891))
            note(format.number(from: format.string(from: 1_234_567.891) ?? ""))
        }
        note(12.formatted(.currency(code: "JPY").locale(locale)))
        note(123_456.formatted(.number.notation(.compactName).locale(locale)))
        note(Int64(123_456_789).formatted(.byteCount(style: .file).locale(locale)))
        note(["a", "b", "c"].formatted(.list(type: .and).locale(locale)))
    }

    mutating func askTexts(_ locale: Locale) {
        note("straße İstanbul ijsland".capitalized(with: locale))
        note("ISTANBUL".lowercased(with: locale))
        note("istanbul".uppercased(with: locale))
        note("résumé".folding(options: [.diacriticInsensitive, .caseInsensitive], locale: locale))
        let loosely: String.CompareOptions = [.caseInsensitive, .diacriticInsensitive]
        note("Zürich".range(of: "zur", options: loosely, locale: locale) != nil)
        note("a".compare("Ä", options: loosely, range: nil, locale: locale).rawValue)
    }
}

let identifiers = Locale.availableIdentifiers.sorted() + odd
for identifier in identifiers {
    var answers = Answers()
    let locale = Locale(identifier: identifier)
    answers.askNames(locale)
    answers.askDates(locale)
    answers.askNumbers(locale)
    answers.askTexts(locale)
    let shown = english.contains(identifier) ? answers.texts.joined(separator: "\n") : ""
    print("\(identifier): \(answers.texts.count) answers\n\(shown)")
}

// Of no language: zones, and what the standard library's own tables do not have.
for name in TimeZone.knownTimeZoneIdentifiers {
    print(name, TimeZone(identifier: name)?.secondsFromGMT(for: date) ?? -1)
}
// Not in Thai: where its words end is in a dictionary, which is left out.
let text = "Straße ﬀ ½ Å 日本語. Hello"
print(text.precomposedStringWithCompatibilityMapping, text.localizedCapitalized)
print("ab".localizedStandardCompare("B").rawValue, Locale.commonISOCurrencyCodes.count)
print(URL(string: "https://bücher.example/ä")?.absoluteString ?? "no URL")
let words = try NSRegularExpression(pattern: #"\p{L}+"#)
print(words.numberOfMatches(in: text, range: NSRange(text.startIndex..., in: text)))
for transform in [StringTransform.toLatin, .stripDiacritics, .fullwidthToHalfwidth, .toXMLHex] {
    print(text.applyingTransform(transform, reverse: false) ?? "nil")
}
// Converters of old character sets are left out: any answer will do, but there is one.
for encoding in [String.Encoding.shiftJIS, .japaneseEUC, .iso2022JP, .isoLatin2, .windowsCP1251] {
    let data = text.data(using: encoding, allowLossyConversion: true) ?? Data()
    _ = String(data: data, encoding: encoding)
}
for encoding in [String.Encoding.utf8, .utf16, .utf32, .isoLatin1, .ascii] {
    let data = text.data(using: encoding, allowLossyConversion: true) ?? Data()
    print(String(data: data, encoding: encoding) ?? "nil")
}
print("\(identifiers.count) languages")
