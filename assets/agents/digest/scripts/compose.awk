# Turns the state of the graph into the JSON object that compose.sh prints. Texts go
# from the state into the object as they are, escaped: only paths are looked into.

BEGIN {
	RS = "\""
	ORS = ""
	failed = "LLM node failed: " # how the result of a failed node begins
	want["root"]
	want["files[].path"]
	want["files[].note"]
	want["summaries[]"]
	want["files[].text"]
	files = 0
}

{
	at = json_string($0)
	if (at == "")
		next
	if (at == "root") {
		root = unescape(text)
	} else if (at == "summaries[]") {
		summary[item[2]] = text
	} else if (at == "files[].text") {
		delete want["files[].text"] # the first is enough
		first_text = text
	} else if (at == "files[].note") {
		note[item[2]] = text
	} else {
		path[item[2]] = unescape(text)
		if (item[2] >= files)
			files = item[2] + 1
	}
}

END {
	for (i = 0; i < files; i++) {
		if (!(i in summary))
			summary[i] = failed "no summary was made."
		if (index(summary[i], failed) == 1)
			failures++
	}
	if (failures == files) {
		print (files ? "none of the files could be summarized; the first says: " unescape(summary[0]) : "the state has no files") "\n" > "/dev/stderr"
		exit 1
	}

	print "{\"title\":\"Digest of " escape(code(root == "." ? base(ENVIRON["PWD"]) : root)) "\","

	print "\"sections\":\""
	for (i = 0; i < files; i++) {
		print "## " escape(code(path[i])) "\\n\\n"
		if (index(summary[i], failed) == 1)
			print "*This file could not be summarized:* " substr(summary[i], length(failed) + 1)
		else
			print summary[i]
		print "\\n\\n" (i in note ? "*" note[i] "*\\n\\n" : "")
	}
	print "## Sources\\n\\n"
	for (i = 0; i < files; i++)
		print i + 1 ". [" escape(code(path[i])) "](" link(path[i]) ")\\n"
	print "\","

	# The overview is made of the summaries, or of the text itself if there is but one.
	if (files == 1) {
		print "\"overview_request\":\"Summarize the text in 5 bullets.\","
		print "\"overview_text\":\"" first_text "\"}\n"
		exit
	}
	print "\"overview_request\":\"The text holds summaries of several files. Summarize what they say together in 5 bullets.\","
	print "\"overview_text\":\""
	for (i = 0; i < files; i++) {
		if (index(summary[i], failed) != 1)
			print "## " escape(one_line(path[i])) "\\n\\n" summary[i] "\\n\\n"
	}
	print "\"}\n"
}

# code returns s as a Markdown code span, whose fence is longer than any in s.
function code(s,   fence) {
	s = one_line(s)
	fence = "`"
	while (index(s, fence))
		fence = fence "`"
	return fence == "`" ? "`" s "`" : fence " " s " " fence
}

# one_line returns s with blanks for its control characters.
function one_line(s) {
	gsub(/[\001-\037\177]/, " ", s)
	return s
}

# link returns a path as the target of a Markdown link.
function link(s,   i, c, out) {
	if (!("a" in byte)) {
		for (i = 1; i < 256; i++)
			byte[sprintf("%c", i)] = i
	}
	out = ""
	for (i = 1; i <= length(s); i++) {
		c = substr(s, i, 1)
		out = out (c ~ /[A-Za-z0-9._~]/ || c == "-" || c == "/" ? c : sprintf("%%%02X", byte[c]))
	}
	return out
}

function base(s) {
	sub(/\/+$/, "", s)
	sub(/^.*\//, "", s)
	return s
}
