# Prints the prompt in a graph's state, without the white space around it and with
# plain line ends.

BEGIN {
	RS = "\""
	want["initial_prompt"]
}

json_string($0) {
	prompt = unescape(text)
	gsub(/\r\n/, "\n", prompt)
	sub(/^[ \t\r\n]+/, "", prompt)
	sub(/[ \t\r\n]+$/, "", prompt)
	printf "%s", prompt
}
