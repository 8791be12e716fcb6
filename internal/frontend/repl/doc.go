// Package repl is the interactive face: it reads lines at a terminal, has a console execute
// them, and shows what comes. What a line means is the console's business.
package repl
