package argc_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"loki/internal/tool/script/argc"
)

// show writes a parameter in short form.
func show(p *argc.Param) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s|%s", p.ID, p.Short, p.Long)
	add := func(on bool, format string, args ...any) {
		if on {
			fmt.Fprintf(&b, " "+format, args...)
		}
	}
	add(p.Required, "required")
	add(p.Multiple, "multiple")
	add(p.Rest, "rest")
	add(p.Delimiter != "", "at %s", p.Delimiter)
	add(p.Choices != nil, "of %q", p.Choices)
	add(p.ChoicesBy != "", "by %s", p.ChoicesBy)
	add(p.Unchecked, "unchecked")
	if p.Default != nil {
		add(true, "default %q", *p.Default)
	}
	add(p.DefaultBy != "", "default by %s", p.DefaultBy)
	add(p.Labels != nil && p.Kind != argc.Flag, "%s", strings.Join(p.Labels, ","))
	add(p.Last != 0, "last %c", p.Last)
	add(p.Bind != "", "bound to %s", p.Bind)
	add(p.Assigned, "assigned")
	add(p.Prefixed, "prefixed")
	add(p.Description != "", "%q", p.Description)
	return b.String()
}

func TestParam(t *testing.T) {
	for _, tt := range []struct{ tag, want string }{
		{"@option --n", "n |--n N"},
		{"@option -n --name! text", `name -n|--name required NAME "text"`},
		{"@option -n --name \t text", `name -n|--name NAME "text"`},
		{"@option -n", "n -n| N"},
		{"@option -n! <INT> text", `n -n| required INT "text"`},
		{"@option +n --name", "name +n|--name NAME"},
		{"@option +name", "plus_name |+name NAME"},
		{"@option -name*,", "name |-name multiple at , NAME"},
		{"@option --n! <INT> text", `n |--n required INT "text"`},
		{"@option --n!  <INT> text", `n |--n required N "<INT> text"`},
		{"@option --n $X", "n |--n N bound to X"},
		{"@option --n  $X", `n |--n N "$X"`},
		{"@option --n $$", "n |--n N bound to _N"},
		{"@option --n $amount due", `n |--n N "$amount due"`},
		{"@option --n~", "n |--n rest N"},
		{"@option --n+", "n |--n required multiple N"},
		{"@option --n+@", "n |--n required multiple at @ N"},
		{"@option --n[a|b]", `n |--n of ["a" "b"] N`},
		{"@option --n![a|b]", `n |--n required of ["a" "b"] N`},
		{"@option --n[=a|b]", `n |--n of ["a" "b"] default "a" N`},
		{"@option --n+[=a|b]", `n |--n multiple of ["a" "b"] default "a" N`},
		{"@option --n[a]", `n |--n of ["a"] N`},
		{"@option --n[]", `n |--n of [""] N`},
		{"@option --n['a|b'|\"c]\"|d e]", `n |--n of ["a|b" "c]" "d e"] N`},
		{"@option --n['a\\'b'|c]", `n |--n of ["a\\'b" "c"] N`},
		{"@option --n[`f`] t", `n |--n by f N "t"`},
		{"@option --n*,[?`f`]", "n |--n multiple at , by f unchecked N"},
		{"@option --n=`f`", "n |--n default by f N"},
		{"@option --n=", `n |--n default "" N`},
		{"@option --n=a,b text", `n |--n default "a,b" N "text"`},
		{"@option --n='a b' text", `n |--n default "a b" N "text"`},
		{"@option --n='a", `n |--n default "'a" N`},
		{"@option --n <A> <bC_d>  <E>", `n |--n A,B-C-D "<E>"`},
		{"@option --n <A> <B+>", "n |--n A,B last +"},
		{"@option --n <A?>", "n |--n A last ?"},
		{"@option --n <A*>", "n |--n A last *"},
		{"@option --n <a <b>> c", `n |--n A <B> "c"`},
		{"@option --n <a", `n |--n N "<a"`},
		{"@option --n: <A>", "n |--n A assigned"},
		{"@option --n::", "n: |--n: N:"},
		{"@option --n-*", "n |--n multiple N prefixed"},
		{"@option --n--", "n- |--n- N-"},
		{"@option --int", "int |--int INT"},
		{"@option --maxSize_x", "maxSize_x |--maxSize_x MAX-SIZE-X"},
		{"@flag --x", "x |--x"},
		{"@flag -x --xx* $X t", `xx -x|--xx multiple bound to X "t"`},
		{"@flag -x t --y", `x -x| "t --y"`},
		{"@flag -?", "? -?|"},
		{"@flag -* t", `* -*| "t"`},
		{"@arg x", "x | X"},
		{"@arg x! $X <y> t", `x | required Y bound to X "t"`},
		{"@arg x~", "x | rest X"},
		{"@arg x*,[a|b]", `x | multiple at , of ["a" "b"] X`},
		{"@env X <Y> text", `X | "<Y> text"`},
		{"@env X!", "X | required"},
		{"@env X[=a|b]", `X | of ["a" "b"] default "a"`},
	} {
		t.Run(strings.ReplaceAll(tt.tag, " ", "_"), func(t *testing.T) {
			s, err := argc.Parse([]byte("# " + tt.tag + "\nf() { :; }\n"))
			if err != nil {
				t.Fatal(err)
			}
			all := append(append(s.Root.Options(), s.Root.Args...), s.Root.Envs...)
			if got := show(all[0]); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	for _, tt := range []struct {
		name, script string
		line, column int
		want         string
	}{
		{"unknown", "x\n# @param x\n", 2, 4, "unknown tag @param"},
		{"plural", "# @options --x", 1, 4, "unknown tag @options"},
		{"decoration", "# @@ title @@", 1, 4, "unknown tag @@"},
		{"default_and_modifier", "# @option --n!=5", 1, 15, `unexpected "=5"`},
		{"default_and_many", "# @option --n*=5", 1, 15, `unexpected "=5"`},
		{"one_default_choice", "# @option --n[=a]", 1, 14, `unexpected "[=a]"`},
		{"digit_in_bound_name", "# @option --n $X1", 1, 17, `unexpected "1"`},
		{"required_flag", "# @flag --x!", 1, 12, `unexpected "!"`},
		{"no_dashes", "# @option x", 1, 11, `unexpected "x"`},
		{"three_dashes", "# @flag ---x", 1, 9, "syntax error"},
		{"no_name", "# @arg", 1, 7, "end of line"},
		{"no_alias", "# @cmd\n# @alias ,\n", 2, 10, "@alias"},
		{"no_meta", "# @meta", 1, 8, "@meta"},
		{"no_version", "# @version", 1, 11, "version is missing"},
		{"late_tag", "f() { :; }\n# @flag --x", 2, 4, "belongs to no command"},
		{"late_tag_after_cmd", "# @cmd\nf() { :; }\n# @flag --x", 3, 4, "belongs to no command"},
		{"two_cmds", "# @cmd a\n# @cmd b\nf() { :; }", 2, 4, "the @cmd of line 1 has no function"},
		{"cmd_at_end", "# @cmd a\n", 1, 1, "@cmd without a function"},
		{"same_command", "# @cmd\nf() { :; }\n# @cmd\nf() { :; }", 4, 1, "two commands are called f"},
		{"same_alias", "# @cmd\n# @alias g\nf() { :; }\n# @cmd\ng() { :; }", 5, 1, "two commands are called g"},
		{"dashed_alias", "# @cmd\na_b() { :; }\n# @cmd\na-b() { :; }", 4, 1, "two commands are called a-b"},
		{"no_parent", "# @cmd\na::b() { :; }", 2, 1, "below a, which is not declared"},
		{"no_command_name", "# @cmd\n__() { :; }", 2, 1, "no name"},
		{"same_option", "# @option -a --b\n# @flag --b", 2, 9, "--b is declared twice, first in line 1"},
		{"same_short", "# @option -a --b\n# @flag -a --c", 2, 9, "-a is declared twice"},
		{"same_arg", "# @arg a\n# @arg a", 2, 8, "argument a"},
		{"same_env", "# @env A\n# @env A", 2, 8, "environment variable A"},
		{"no_default_function", "# @arg a=`f`", 1, 1, "f is not defined"},
		{"no_choice_function", "# @arg a[`f`]", 1, 1, "f is not defined"},
		{"two_defaults", "# @cmd\n# @meta default-subcommand\nf() { :; }\n# @cmd\n# @meta default-subcommand\ng() { :; }", 4, 1, "two default"},
		{"default_and_args", "# @arg a\n# @cmd\n# @meta default-subcommand\nf() { :; }", 2, 1, "no default subcommand"},
		{"many_env", "# @env A*", 1, 8, "one value"},
		{"env_name", "# @env A-B", 1, 8, "cannot be the name"},
		{"labels_and_delimiter", "# @option --a*, <A> <B>", 1, 11, "several values"},
		{"labels_and_assigned", "# @option --a: <A> <B>", 1, 11, "several values"},
		{"bound_and_prefixed", "# @option --a- $X", 1, 11, "cannot be bound"},
		{"reserved", "# @option --_fn", 1, 11, "taken"},
		{"open_block", "a\n# ARGC-BUILD {\n# @flag --x\n", 2, 1, "has no end"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := argc.Parse([]byte(tt.script))
			e, ok := errors.AsType[*argc.Error](err)
			if !ok {
				t.Fatalf("got %v", err)
			}
			if e.Line != tt.line || e.Column != tt.column || !strings.Contains(e.Msg, tt.want) {
				t.Errorf("got %v, want line %d, column %d: ...%s", e, tt.line, tt.column, tt.want)
			}
		})
	}
}

func TestParseScript(t *testing.T) {
	s, err := argc.Parse([]byte(strings.Join([]string{
		"#!/bin/bash",
		"## @describe  First line ",
		"#",
		"#   indented",
		`# \@param is no tag`,
		"# @ nor is this",
		"",
		"# not part of it, user@example.com",
		"  # @nonsense in an indented line",
		"list=()",
		"# @meta author somebody",
		"# @meta require-tools jq, yq\tcurl",
		"#\t@option --x\r",
		"# more of x",
		"function helper {",
		"# @cmd Two",
		"# @alias one,two , three and ignored words",
		"two_words_ ( ) {",
		"# @cmd Sub",
		"two_words::sub() {",
	}, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := s.Root.Describe, "First line\n\n  indented\n@param is no tag\n@ nor is this"; got != want {
		t.Errorf("describe %q, want %q", got, want)
	}
	if got := fmt.Sprint(s.Root.Tools); got != "[jq yq curl]" {
		t.Errorf("tools %s", got)
	}
	if x := s.Root.Options()[0]; x.Description != "more of x" || x.Line != 13 {
		t.Errorf("option %q, line %d", x.Description, x.Line)
	}
	c := s.Root.Commands[0]
	if want := []string{"two-words", "one", "two", "three"}; c.Name != "two_words" || !slices.Equal(c.Aliases, want) || c.Line != 16 || c.Function != "" {
		t.Errorf("command %q, aliases %q, line %d, function %q", c.Name, c.Aliases, c.Line, c.Function)
	}
	if sub := c.Commands[0]; sub.Name != "sub" || sub.Function != "two_words::sub" {
		t.Errorf("subcommand %q %q", sub.Name, sub.Function)
	}
}

func TestFunctionsToRun(t *testing.T) {
	s, err := argc.Parse([]byte("main() { :; }\n# @cmd\na() { :; }\n# @cmd\na::b() { :; }\na::main() { :; }\n"))
	if err != nil {
		t.Fatal(err)
	}
	a := s.Root.Commands[0]
	if got, want := []string{s.Root.Function, a.Function, a.Commands[0].Function}, []string{"main", "a::main", "a::b"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
