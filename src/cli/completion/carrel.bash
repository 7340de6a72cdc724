# bash completion of carrel
_carrel()
{
	local line=${COMP_LINE:0:COMP_POINT} value group word prefix kind
	local -a words
	read -ra words <<<"$line"
	[[ $line == *[[:space:]] ]] && words+=('')
	word=${words[${#words[@]} - 1]}
	# bash completes from the last = or : on
	prefix=${word%"${word##*[=:]}"}
	COMPREPLY=()
	while IFS=$'\t' read -r value _ group; do
		# bash 4.4 and later keep the order of groups
		[[ $group ]] && compopt -o nosort 2>/dev/null
		case $value in
		:files | :dirs)
			# names beside files must not be quoted as files are
			((${#COMPREPLY[@]})) || compopt -o filenames
			[[ $value == :dirs ]] && kind=-d || kind=-f
			while read -r value; do
				COMPREPLY+=("$value")
			done < <(compgen "$kind" -- "${word#"$prefix"}")
			;;
		*[=:])
			compopt -o nospace
			COMPREPLY+=("${value#"$prefix"}")
			;;
		*)
			COMPREPLY+=("${value#"$prefix"}")
			;;
		esac
	done < <("${1/#\~/$HOME}" __complete "${words[@]:1}" 2>/dev/null)
}
complete -F _carrel carrel
