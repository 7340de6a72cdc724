#compdef carrel
# zsh completion of carrel
_carrel()
{
	local line value group tab=$'\t'
	local -a part values shown open open_shown commands
	for line in "${(@f)$(${(Q)words[1]} __complete "${(@Q)words[2,CURRENT]}" 2>/dev/null)}" ''; do
		part=("${(@ps:\t:)line}")
		value=$part[1]
		if [[ $part[3] != "$group" ]]; then
			(( $#commands )) && _describe -V -t "${group// /-}" "$group" commands
			group=$part[3] commands=()
		fi
		[[ -z $group ]] || { commands+=("$value:$part[2]"); continue }
		line=${line/$tab/  -- }
		case $value in
		'') ;;
		:files) compset -P '*[=:]'; _files ;;
		:dirs) compset -P '*[=:]'; _files -/ ;;
		*[=:]) open+=("$value"); open_shown+=("$line") ;;
		*) values+=("$value"); shown+=("$line") ;;
		esac
	done
	(( $#values )) && compadd -l -d shown -a values
	(( $#open )) && compadd -l -S '' -d open_shown -a open
	return 0
}
if [[ $funcstack[1] == _carrel ]]; then
	_carrel "$@"
else
	compdef _carrel carrel
fi
