package completion

import (
	"fmt"
	"slices"
	"strings"
)

// Static returns a script that completes flags and their fixed values in s without
// calling the program.
func Static(s Shell, flags []Flag) string {
	flags = slices.DeleteFunc(flags, func(f Flag) bool { return f.Hidden })
	var b strings.Builder
	switch s {
	case Bash:
		staticBash(&b, flags)
	case Zsh:
		staticZsh(&b, flags)
	case Fish:
		staticFish(&b, flags)
	case PowerShell:
		staticPowerShell(&b, flags)
	case Elvish:
		staticElvish(&b, flags)
	case Nushell:
		staticNushell(&b, flags)
	}
	return b.String()
}

// spellings returns how f can be written, the long form last.
func (f Flag) spellings() []string {
	if f.Short == "" {
		return []string{"--" + f.Name}
	}
	return []string{"-" + f.Short, "--" + f.Name}
}

// kinds sorts flags by what a script does behind them.
type kinds struct {
	enumerated []Flag // offers the values
	files      []Flag // offers files
	free       []Flag // offers nothing, for anything may follow
}

// flagKinds groups flags by what completes their values.
func flagKinds(flags []Flag) (k kinds) {
	for _, f := range flags {
		switch {
		case len(f.Values) > 0:
			k.enumerated = append(k.enumerated, f)
		case f.Arg == "" || f.Optional:
		case f.isFile():
			k.files = append(k.files, f)
		default:
			k.free = append(k.free, f)
		}
	}
	return k
}

// join returns the spellings of all flags, each as spell writes it, with sep between.
func join(flags []Flag, sep string, spell func(string) string) string {
	var all []string
	for _, f := range flags {
		for _, s := range f.spellings() {
			all = append(all, spell(s))
		}
	}
	return strings.Join(all, sep)
}

func asIs(s string) string { return s }

// posixQuoted is s as one word of a POSIX shell.
func posixQuoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// doubledQuoted is s as one word of a shell in which a quote is written twice.
func doubledQuoted(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

func staticBash(b *strings.Builder, flags []Flag) {
	k := flagKinds(flags)
	b.WriteString(`# Completion of loki for bash: options and their fixed values.

_loki_static() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} IFS=$'\n'
    if [[ $current == = ]]; then
        current= # bash cuts words at =
    elif [[ $previous == = ]]; then
        previous=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    COMPREPLY=()
    case $previous in
`)
	for _, f := range k.enumerated {
		fmt.Fprintf(b, "    %s) COMPREPLY=($(compgen -W %s -- \"$current\")) ;;\n",
			join([]Flag{f}, " | ", asIs), "$'"+strings.Join(f.Values, `\n`)+"'")
	}
	if len(k.files) > 0 {
		fmt.Fprintf(b, "    %s)\n        compopt -o filenames 2>/dev/null\n        COMPREPLY=($(compgen -f -- \"$current\"))\n        ;;\n",
			join(k.files, " | ", asIs))
	}
	if len(k.free) > 0 {
		fmt.Fprintf(b, "    %s) ;;\n", join(k.free, " | ", asIs))
	}
	fmt.Fprintf(b, `    *)
        if [[ $current == -* ]]; then
            COMPREPLY=($(compgen -W %s -- "$current"))
        fi
        ;;
    esac
}

complete -F _loki_static loki
`, "$'"+join(flags, `\n`, asIs)+"'")
}

func staticZsh(b *strings.Builder, flags []Flag) {
	b.WriteString(`#compdef loki
# Completion of loki for zsh: options and their fixed values.

_loki_static() {
    _arguments -s -S -A '-*' \
`)
	for _, f := range flags {
		names := "--" + f.Name
		if f.Arg != "" {
			names += "="
		}
		if f.Short != "" {
			short := "-" + f.Short
			if f.Arg != "" {
				short += "+"
			}
			names = "{" + short + "," + names + "}"
		}
		fmt.Fprintf(b, "        '*'%s%s \\\n", names, posixQuoted("["+zshEscaped(f.Usage)+"]"+zshValue(f)))
	}
	b.WriteString(`        '*: :_message text'
}

if [[ ${funcstack[1]} == _loki ]]; then
    _loki_static "$@"
else
    (($+functions[compdef])) || { autoload -Uz compinit && compinit }
    compdef _loki_static loki
fi
`)
}

// zshValue returns the part of a specification for _arguments that describes the value.
func zshValue(f Flag) string {
	if f.Arg == "" {
		return ""
	}
	colons, action := ":", " "
	if f.Optional {
		colons = "::"
	}
	switch {
	case len(f.Values) > 0:
		action = "(" + strings.Join(f.Values, " ") + ")"
	case f.isFile():
		action = "_files"
	}
	return strings.Repeat(colons+zshEscaped(f.Arg)+":"+action, f.Words)
}

func zshEscaped(s string) string {
	return strings.NewReplacer(`\`, `\\`, ":", `\:`, "[", `\[`, "]", `\]`).Replace(s)
}

func staticFish(b *strings.Builder, flags []Flag) {
	b.WriteString("# Completion of loki for fish: options and their fixed values.\n\ncomplete -c loki -e\ncomplete -c loki -f\n")
	for _, f := range flags {
		b.WriteString("complete -c loki")
		if f.Short != "" {
			b.WriteString(" -s " + f.Short)
		}
		b.WriteString(" -l " + f.Name)
		switch {
		case len(f.Values) > 0:
			b.WriteString(" -x -a " + fishQuoted(strings.Join(f.Values, " ")))
		case f.Arg == "" || f.Optional:
		case f.isFile():
			b.WriteString(" -r -F")
		default:
			b.WriteString(" -x")
		}
		b.WriteString(" -d " + fishQuoted(f.Usage) + "\n")
	}
}

func fishQuoted(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'"
}

func staticPowerShell(b *strings.Builder, flags []Flag) {
	k := flagKinds(flags)
	b.WriteString(`# Completion of loki for PowerShell: options and their fixed values.

Register-ArgumentCompleter -Native -CommandName loki -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)

    $previous = ''
    foreach ($element in $commandAst.CommandElements) {
        if ($element.Extent.EndOffset -lt $cursorPosition) { $previous = $element.Extent.Text }
    }
    $values = switch -CaseSensitive ($previous) {
`)
	for _, f := range k.enumerated {
		values := make([]string, len(f.Values))
		for i, v := range f.Values {
			values[i] = doubledQuoted(v)
		}
		fmt.Fprintf(b, "        { $_ -cin @(%s) } { %s; break }\n", join([]Flag{f}, ", ", doubledQuoted), strings.Join(values, ", "))
	}
	b.WriteString(`    }
    if ($values) {
        $values | Where-Object { $_.StartsWith($wordToComplete, [StringComparison]::Ordinal) } | ForEach-Object {
            [System.Management.Automation.CompletionResult]::new($_, $_, 'ParameterValue', $_)
        }
        return
    }
`)
	fmt.Fprintf(b, "    # Behind these PowerShell offers files.\n    if ($previous -cin @(%s)) { return }\n\n    @(\n",
		join(append(k.files, k.free...), ", ", doubledQuoted))
	for _, f := range flags {
		for _, s := range f.spellings() {
			fmt.Fprintf(b, "        , @(%s, %s)\n", doubledQuoted(s), doubledQuoted(f.Usage))
		}
	}
	b.WriteString(`    ) | Where-Object { $wordToComplete.StartsWith('-') -and $_[0].StartsWith($wordToComplete, [StringComparison]::Ordinal) } | ForEach-Object {
        [System.Management.Automation.CompletionResult]::new($_[0], $_[0], 'ParameterName', $_[1])
    }
}
`)
}

func staticElvish(b *strings.Builder, flags []Flag) {
	k := flagKinds(flags)
	b.WriteString(`# Completion of loki for elvish: options and their fixed values.

set edit:completion:arg-completer[loki] = {|@words|
  var values = [`)
	if len(k.enumerated) == 0 {
		b.WriteString("&") // an empty map
	}
	b.WriteString("\n")
	for _, f := range k.enumerated {
		for _, s := range f.spellings() {
			fmt.Fprintf(b, "    &%s=[%s]\n", s, strings.Join(f.Values, " "))
		}
	}
	fmt.Fprintf(b, "  ]\n  var files = [%s]\n  var free = [%s]\n", join(k.files, " ", asIs), join(k.free, " ", asIs))
	b.WriteString(`  var previous = $words[-2]
  if (has-key $values $previous) {
    all $values[$previous]
  } elif (has-value $files $previous) {
    edit:complete-filename $words[-1]
  } elif (not (has-value $free $previous)) {
`)
	for _, f := range flags {
		for _, s := range f.spellings() {
			fmt.Fprintf(b, "    edit:complex-candidate %s &display=%s\n", s, doubledQuoted(s+"  "+f.Usage))
		}
	}
	b.WriteString("  }\n}\n")
}

func staticNushell(b *strings.Builder, flags []Flag) {
	b.WriteString("# Completion of loki for nushell: options and their fixed values. A module: use loki.nu *\n")
	for _, f := range flags {
		if len(f.Values) == 0 {
			continue
		}
		values := make([]string, len(f.Values))
		for i, v := range f.Values {
			values[i] = `"` + v + `"`
		}
		fmt.Fprintf(b, "\ndef \"nu-complete loki %s\" [] { [%s] }\n", f.Name, strings.Join(values, ", "))
	}
	b.WriteString("\nexport extern loki [\n")
	for _, f := range flags {
		b.WriteString("  --" + f.Name)
		if f.Short != "" {
			b.WriteString("(-" + f.Short + ")")
		}
		switch {
		case len(f.Values) > 0:
			fmt.Fprintf(b, `: string@"nu-complete loki %s"`, f.Name)
		case f.Arg == "" || f.Optional: // nushell knows no optional value; it is then a word of its own
		case f.isFile():
			b.WriteString(": path")
		default:
			b.WriteString(": string")
		}
		b.WriteString(" # " + f.Usage + "\n")
	}
	b.WriteString("  ...text: string # the prompt\n]\n")
}
