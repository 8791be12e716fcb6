// Package repl measures what a user waits for in the REPL: the prompt, a key on the screen, a menu. The
// program runs in a terminal with a session of 10,000 messages, 500 more sessions and 2,000 models.
package repl
