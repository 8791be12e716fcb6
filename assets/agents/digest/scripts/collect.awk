# Turns the stream of collect.sh into the JSON object that the script prints.
#
# The stream holds the files one after the other. Before each is a line with a mark,
# then its number, the number of all files, and its name, in which \\ stands for a
# backslash and \n for a line end. Another line with the mark ends the stream. The mark
# begins on a line of its own, so each file has one line end more than on disk.
# A byte 376 (octal) was a zero; 377 was a 376 or 377, neither of which is in UTF-8.

BEGIN {
	ORS = ""
	mark = "\376" nonce
	max_total = 32000000 # bytes of text; what a script prints and a state holds has limits
	if (ENVIRON["DIGEST_PROBLEM"] != "") {
		problem = ENVIRON["DIGEST_PROBLEM"]
		exit
	}
	print "{\"files\":["
}

index($0, mark) == 1 {
	end_file()
	rest = substr($0, length(mark) + 2)
	position = rest + 0
	rest = substr(rest, index(rest, " ") + 1)
	total = rest + 0
	name = substr(rest, index(rest, " ") + 1)
	if (position > 0 && (files >= max_files || size_of_all >= max_total)) {
		left_out = total - position + 1
		exit
	}
	next
}

{
	line[++lines] = $0
	size += length($0) + (lines > 1)
}

END {
	if (problem == "") {
		print "],"
		if (files == 0)
			problem = "No text file found in " ENVIRON["DIGEST_ROOT"] (skipped ? " (" skipped " empty, binary or unreadable)" : "") "."
	} else {
		print "{\"files\":[],"
	}
	if (problem != "")
		print "\"message\":\"" escape(problem) "\",\"_next\":\"nothing\","
	print "\"root\":\"" escape(ENVIRON["DIGEST_ROOT"]) "\","
	print "\"tally\":\"" tally() "\","
	print "\"summary_request\":\"Summarize the text in " sentences " sentence" (sentences == 1 ? "" : "s") ".\","
	print "\"file_count\":" files + 0 ",\"skipped\":" skipped + 0 ",\"left_out\":" left_out + 0 "}\n"
}

# end_file writes the file whose lines were read, if it is text.
function end_file(   i, cut, odd, blank, copy) {
	if (position > 0) {
		cut = size > max_bytes
		if (cut)
			cut_text()
		invalid = 0
		odd = is_document(line[1]) ? size + 1 : 0
		blank = 1
		for (i = 1; i <= lines; i++) {
			if (index(line[i], "\376"))
				odd = size + 1
			if (blank && line[i] ~ /[^ \t\r\f\v]/)
				blank = 0
			if (line[i] ~ /[\001-\010\016-\032\034-\037]/) {
				copy = line[i]
				odd += gsub(/[\001-\010\016-\032\034-\037]/, "", copy)
			}
			line[i] = escape(line[i])
		}
		# Perl's test for text: less than a third of the bytes is out of place.
		if (blank || (odd + invalid) * 3 >= size) {
			skipped++
		} else {
			print (files++ ? "," : "") "{\"path\":\"" escape(unescape(name)) "\",\"text\":\""
			for (i = 1; i <= lines; i++)
				print (i > 1 ? "\\n" : "") line[i]
			print "\"" (cut ? ",\"note\":\"Only the first " max_bytes " bytes were read.\"" : "") "}"
			size_of_all += size
		}
	}
	lines = 0
	size = 0
	position = 0
}

# is_document reports whether a file that begins with this line holds a document that is not read as text, even if all of its
# bytes are: PDF, RTF or PostScript.
function is_document(first) {
	return index(first, "%PDF-") == 1 || index(first, "{\\rtf") == 1 || index(first, "%!PS") == 1
}

# cut_text shortens the lines to max_bytes, and by a character that the cut goes through.
function cut_text(   i, room, tail) {
	room = max_bytes
	for (i = 1; length(line[i]) < room; i++)
		room -= length(line[i]) + 1
	line[i] = substr(line[i], 1, room)
	lines = i
	size = max_bytes
	if (match(line[i], /[\300-\367][\200-\277]*$/)) {
		tail = substr(line[i], RSTART, 1)
		if (RLENGTH < 2 + (tail >= "\340") + (tail >= "\360"))
			line[i] = substr(line[i], 1, RSTART - 1)
	}
}

# tally tells in words what was read.
function tally(   s) {
	s = files + 0 (files == 1 ? " file" : " files") " read"
	if (skipped)
		s = s ", " skipped " skipped (empty, binary or unreadable)"
	if (left_out)
		s = s ", " left_out " left out (" (files >= max_files ? "see the variable max_files" : "too much text") ")"
	return s "."
}
