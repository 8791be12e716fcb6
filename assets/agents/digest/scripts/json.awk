# JSON for awk, in POSIX awk alone. Run it with LC_ALL=C: everything here counts bytes.
#
# Reading: set RS to the quote, name the strings you need in want, and hand every
# record to json_string. It returns the place of the string that has just ended, if
# it is one of those, and leaves the string, still escaped, in text:
#
#	BEGIN { RS = "\""; want["users[].name"] }
#	json_string($0) { print unescape(text) }
#
# Strings nobody wants are passed over without being stored. item[d] is the index,
# from 0, in the array at depth d; the outermost value has depth 1.
#
# Writing: "\"" escape(s) "\"" is a JSON string for any bytes s. What is already
# escaped can be joined and written as it is.

# json_string takes the next record. Records are in turn what stands between two
# strings and what stands in one, where an escaped quote ends a record too.
function json_string(record) {
	if (!inside) {
		structure(record)
		inside = 1
		text = ""
		keep = at_key || ((place[depth] member()) in want)
		return ""
	}
	if (keep)
		text = text record
	if (ends_escaping(record)) {
		if (keep)
			text = text "\""
		return ""
	}
	inside = 0
	if (at_key) {
		key[depth] = unescape(text)
		return ""
	}
	return keep ? place[depth] member() : ""
}

# structure follows the brackets, commas and colons between two strings.
function structure(s,   i, c, at) {
	for (i = 1; i <= length(s); i++) {
		c = substr(s, i, 1)
		if (c == "{" || c == "[") {
			at = place[depth] member()
			depth++
			place[depth] = at
			kind[depth] = c
			item[depth] = 0
			at_key = c == "{"
		} else if (c == "}" || c == "]") {
			depth--
			at_key = 0
		} else if (c == ",") {
			item[depth]++
			at_key = kind[depth] == "{"
		} else if (c == ":") {
			at_key = 0
		}
	}
}

# member is the last part of the place of the value that comes next.
function member() {
	if (depth == 0)
		return ""
	if (kind[depth] == "[")
		return "[]"
	return (depth > 1 ? "." : "") key[depth]
}

# ends_escaping tells whether the quote behind s is escaped.
function ends_escaping(s,   n) {
	n = length(s)
	while (n > 0 && substr(s, n, 1) == "\\")
		n--
	return (length(s) - n) % 2
}

# unescape returns the bytes of an escaped string. What UTF-8 cannot hold, and a
# zero, which awk strings cannot hold, become U+FFFD.
function unescape(s,   out, i, c, code, low) {
	out = ""
	while ((i = index(s, "\\")) > 0) {
		out = out substr(s, 1, i - 1)
		c = substr(s, i + 1, 1)
		s = substr(s, i + 2)
		if (c == "u") {
			code = hex(substr(s, 1, 4))
			s = substr(s, 5)
			if (code >= 55296 && code <= 56319 && substr(s, 1, 2) == "\\u") {
				low = hex(substr(s, 3, 4))
				if (low >= 56320 && low <= 57343) {
					code = 65536 + (code - 55296) * 1024 + low - 56320
					s = substr(s, 7)
				}
			}
			out = out utf8(code)
		} else if (c == "n") {
			out = out "\n"
		} else if (c == "t") {
			out = out "\t"
		} else if (c == "r") {
			out = out "\r"
		} else if (c == "b") {
			out = out "\b"
		} else if (c == "f") {
			out = out "\f"
		} else {
			out = out c
		}
	}
	return out s
}

function hex(digits,   i, n) {
	n = 0
	for (i = 1; i <= length(digits); i++)
		n = n * 16 + index("0123456789abcdef", tolower(substr(digits, i, 1))) - 1
	return n
}

function utf8(code) {
	if (code <= 0 || code >= 55296 && code <= 57343)
		code = 65533
	if (code < 128)
		return sprintf("%c", code)
	if (code < 2048)
		return sprintf("%c%c", 192 + int(code / 64), 128 + code % 64)
	if (code < 65536)
		return sprintf("%c%c%c", 224 + int(code / 4096), 128 + int(code / 64) % 64, 128 + code % 64)
	return sprintf("%c%c%c%c", 240 + int(code / 262144), 128 + int(code / 4096) % 64, 128 + int(code / 64) % 64, 128 + code % 64)
}

# escape returns s as it stands between the quotes of a JSON string. Each byte that
# is not UTF-8 becomes U+FFFD and is counted in invalid.
function escape(s,   out, i, c) {
	if (s ~ /[\200-\377]/)
		s = repair(s)
	if (s !~ /[\001-\037"\\]/)
		return s
	gsub(/["\\]/, "\\\\&", s)
	gsub(/\t/, "\\t", s)
	gsub(/\n/, "\\n", s)
	gsub(/\r/, "\\r", s)
	while (match(s, /[\001-\037]/)) {
		c = substr(s, RSTART, 1)
		for (i = 1; i < 32 && sprintf("%c", i) != c; i++)
			;
		out = out substr(s, 1, RSTART - 1) sprintf("\\u%04x", i)
		s = substr(s, RSTART + 1)
	}
	return out s
}

# repair replaces what is not UTF-8 (RFC 3629, section 4). It looks at a stretch of
# the text at a time, as searching the rest again for each byte would take squared time.
function repair(s,   out, i, stretch) {
	if (!well_formed)
		well_formed = "([\001-\177]|[\302-\337][\200-\277]|\340[\240-\277][\200-\277]" \
			"|[\341-\354\356\357][\200-\277][\200-\277]|\355[\200-\237][\200-\277]" \
			"|\360[\220-\277][\200-\277][\200-\277]|[\361-\363][\200-\277][\200-\277][\200-\277]" \
			"|\364[\200-\217][\200-\277][\200-\277])+"
	if (s ~ ("^" well_formed "$"))
		return s
	out = ""
	i = 1
	while (i <= length(s)) {
		stretch = substr(s, i, 256)
		if (match(stretch, "^" well_formed)) {
			out = out substr(stretch, 1, RLENGTH)
			i += RLENGTH
		} else {
			out = out "\357\277\275"
			invalid++
			i++
		}
	}
	return out
}
