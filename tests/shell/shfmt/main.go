// Prints the commands that shfmt's parser finds in each script on standard input, in the format of
// shell_commands.c; "error: …" for a script that it refuses. The argument is posix or bash.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

const expanded = "\x1a"

// Whether shells expand v[i], an unquoted byte.
func isSpecial(v string, i int, isFirst bool) bool {
	switch v[i] {
	case '*', '?', '[':
		return true
	case '{':
		return i+1 == len(v) || v[i+1] != '}'
	case '~':
		return i == 0 && isFirst || i > 0 && (v[i-1] == '=' || v[i-1] == ':')
	}
	return false
}

// Appends the literal text with its quotes removed; false: shells would expand it.
func addText(v string, isQuoted, isFirst bool, out *strings.Builder) bool {
	for i := 0; i < len(v); i++ {
		isEscape := v[i] == '\\' && i+1 < len(v)
		switch {
		case isEscape && v[i+1] == '\n':
			i++
		case isEscape && (!isQuoted || strings.IndexByte("$`\"\\", v[i+1]) >= 0):
			i++
			out.WriteByte(v[i])
		case !isQuoted && isSpecial(v, i, isFirst):
			return false
		default:
			out.WriteByte(v[i])
		}
	}
	return true
}

func addParts(parts []syntax.WordPart, isQuoted bool, out *strings.Builder) bool {
	for i, part := range parts {
		switch x := part.(type) {
		case *syntax.Lit:
			if !addText(x.Value, isQuoted, i == 0, out) {
				return false
			}
		case *syntax.SglQuoted:
			if x.Dollar {
				return false
			}
			out.WriteString(x.Value)
		case *syntax.DblQuoted:
			if x.Dollar || !addParts(x.Parts, true, out) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

func word(w *syntax.Word) string {
	var text, shown strings.Builder
	if w.Lit() == "[" {
		return "["
	}
	if !addParts(w.Parts, false, &text) {
		return expanded
	}
	for _, c := range []byte(text.String()) {
		if c < ' ' {
			fmt.Fprintf(&shown, "\\x%02x", c)
		} else {
			shown.WriteByte(c)
		}
	}
	return shown.String()
}

func call(x *syntax.CallExpr) string {
	var words []string
	names := ""
	for _, a := range x.Args {
		words = append(words, word(a))
	}
	for _, a := range x.Assigns {
		names += a.Name.Value + "= "
	}
	return names + strings.Join(words, "\x1f")
}

func commands(f *syntax.File) string {
	var found []string
	syntax.Walk(f, func(n syntax.Node) bool {
		switch x := n.(type) {
		case *syntax.CallExpr:
			found = append(found, call(x))
		case *syntax.DeclClause, *syntax.TimeClause, *syntax.LetClause, *syntax.CoprocClause,
			*syntax.IfClause, *syntax.WhileClause, *syntax.ForClause, *syntax.CaseClause,
			*syntax.Block, *syntax.Subshell, *syntax.FuncDecl, *syntax.TestClause, *syntax.ArithmCmd:
			found = append(found, strings.TrimPrefix(fmt.Sprintf("%T", n), "*syntax."))
		}
		return true
	})
	return strings.Join(found, "\x1e")
}

func main() {
	variants := map[string]syntax.LangVariant{"posix": syntax.LangPOSIX, "bash": syntax.LangBash}
	parser := syntax.NewParser(syntax.Variant(variants[os.Args[1]]))
	in, out := bufio.NewReader(os.Stdin), bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for {
		script, err := in.ReadString(0)
		if err != nil {
			return
		}
		file, err := parser.Parse(strings.NewReader(strings.TrimSuffix(script, "\x00")), "")
		if err != nil {
			fmt.Fprintf(out, "error: %s\n", strings.ReplaceAll(err.Error(), "\n", " "))
		} else {
			fmt.Fprintln(out, commands(file))
		}
	}
}
