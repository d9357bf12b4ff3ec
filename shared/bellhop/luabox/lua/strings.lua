-- Module "strings": Go's strings package, as far as Sveltos scripts have it. Bytes, as in Go;
-- case is changed for ASCII letters alone, and cut sets are sets of UTF-8 characters.

local box = ...

local S = box.library.string
local sub, find, lower, upper, byte, gsub, rep = S.sub, S.find, S.lower, S.upper, S.byte, S.gsub, S.rep
local error, type, pairs, ipairs, tonumber, select = error, type, pairs, ipairs, tonumber, select
local concat = table.concat
local SPACE = "[ \t\n\v\f\r]"
local CHARACTER = "[%z\1-\127\192-\255][\128-\191]*"

local function want(name, kinds, f)
  return function(...)
    for index = 1, #kinds do
      local got = select(index, ...)
      if kinds[index] == "string" and type(got) == "number" then
        got = "string"
      else
        got = type(got)
      end
      if got ~= kinds[index] then
        error("bad argument #" .. index .. " to '" .. name .. "' (" .. kinds[index] .. " expected, got " .. got .. ")", 2)
      end
    end
    return f(...)
  end
end

local function characters(s)
  return S.gmatch(s, CHARACTER)
end

local function code_of(c)
  local a, b, d, e = byte(c, 1, 4)
  if #c == 2 then
    return (a - 192) * 64 + b - 128
  elseif #c == 3 then
    return ((a - 224) * 64 + b - 128) * 64 + d - 128
  elseif #c == 4 then
    return (((a - 240) * 64 + b - 128) * 64 + d - 128) * 64 + e - 128
  end
  return a
end
box.code_of = code_of

local function set_of(chars)
  local set = {}
  for c in characters(chars) do
    set[c] = true
  end
  return function(c)
    return set[c]
  end
end

local function by_code(f)
  return function(c)
    return f(code_of(c))
  end
end

-- Positions are Go's: from 0, and -1 for absent.
local function first_where(s, test)
  for at, c in S.gmatch(s, "()(" .. CHARACTER .. ")") do
    if test(c) then
      return at - 1, #c
    end
  end
  return -1
end

local function last_where(s, test)
  local last, size = -1, 0
  for at, c in S.gmatch(s, "()(" .. CHARACTER .. ")") do
    if test(c) then
      last, size = at - 1, #c
    end
  end
  return last, size
end

local function trim_left(s, test)
  local at = first_where(s, function(c)
    return not test(c)
  end)
  return at < 0 and "" or sub(s, at + 1)
end

local function trim_right(s, test)
  local at, size = last_where(s, function(c)
    return not test(c)
  end)
  return at < 0 and "" or sub(s, 1, at + size)
end

local function split(s, separator, keep, most)
  local out, at = {}, 1
  if separator == "" then
    for first, c in S.gmatch(s, "()(" .. CHARACTER .. ")") do
      if most > 0 and #out + 1 == most then
        out[#out + 1] = sub(s, first)
        return out
      end
      out[#out + 1] = c
    end
    return out
  end
  while most < 0 or #out + 1 < most do
    local first, last = find(s, separator, at, true)
    if not first then
      break
    end
    out[#out + 1] = sub(s, at, keep and last or first - 1)
    at = last + 1
  end
  out[#out + 1] = sub(s, at)
  return out
end

local function count(s, wanted)
  if wanted == "" then
    local _, length = gsub(s, CHARACTER, "")
    return length + 1
  end
  return #split(s, wanted, false, -1) - 1
end

local function index(s, wanted)
  return (find(s, wanted, 1, true) or 0) - 1
end

local function last_index(s, wanted)
  if wanted == "" then
    return #s
  end
  local last, at = -1, find(s, wanted, 1, true)
  while at do
    last, at = at - 1, find(s, wanted, at + 1, true)
  end
  return last
end

local function replace(s, old, new, most)
  if most == 0 or old == new then
    return s
  end
  if old ~= "" then
    return concat(split(s, old, false, most < 0 and -1 or most + 1), new)
  end
  local out, done = {}, 0
  for c in characters(s) do
    local room = most < 0 or done < most
    out[#out + 1] = (room and new or "") .. c
    done = done + 1
  end
  return concat(out) .. ((most < 0 or done < most) and new or "")
end

local function fields(s, is_gap)
  local out, word = {}, {}
  for c in characters(s .. " ") do
    if is_gap(c) then
      out[#out + 1] = #word > 0 and concat(word) or nil
      word = {}
    else
      word[#word + 1] = c
    end
  end
  return out
end

local function fields_where(s, f)
  local out, word = {}, {}
  for c in characters(s) do
    if f(code_of(c)) then
      out[#out + 1] = #word > 0 and concat(word) or nil
      word = {}
    else
      word[#word + 1] = c
    end
  end
  out[#out + 1] = #word > 0 and concat(word) or nil
  return out
end

local function map(f, s)
  local out = {}
  for c in characters(s) do
    local code = tonumber(f(code_of(c))) or -1
    out[#out + 1] = code >= 0 and box.utf8_of(code) or ""
  end
  return concat(out)
end

local function join(list, separator)
  local out = {}
  for _, item in ipairs(list) do
    out[#out + 1] = type(item) == "string" and item or nil
  end
  return concat(out, separator)
end

local function is_space(c)
  return find(c, SPACE) ~= nil
end

local function has_prefix(s, prefix)
  return sub(s, 1, #prefix) == prefix
end

local function has_suffix(s, suffix)
  return suffix == "" or (#suffix <= #s and sub(s, -#suffix) == suffix)
end

local two, number, func = { "string", "string" }, { "string", "number" }, { "string", "function" }
local one, limited = { "string" }, { "string", "string", "number" }

local function limited_split(keep)
  return function(s, separator, most)
    if most == 0 then
      return nil
    end
    return split(s, separator, keep, most)
  end
end

local exported = {
  Compare = { two, function(a, b) return a == b and 0 or (a < b and -1 or 1) end },
  Contains = { two, function(s, w) return index(s, w) >= 0 end },
  ContainsAny = { two, function(s, chars) return first_where(s, set_of(chars)) >= 0 end },
  ContainsRune = { number, function(s, code) return index(s, box.utf8_of(code)) >= 0 end },
  Count = { two, count },
  EqualFold = { two, function(a, b) return lower(a) == lower(b) end },
  Fields = { one, function(s) return fields(s, is_space) end },
  FieldsFunc = { func, fields_where },
  HasPrefix = { two, has_prefix },
  HasSuffix = { two, has_suffix },
  Index = { two, index },
  IndexAny = { two, function(s, chars) return (first_where(s, set_of(chars))) end },
  IndexByte = { number, function(s, code) return index(s, S.char(code)) end },
  IndexFunc = { func, function(s, f) return (first_where(s, by_code(f))) end },
  IndexRune = { number, function(s, code) return index(s, box.utf8_of(code)) end },
  Join = { { "table", "string" }, join },
  LastIndex = { two, last_index },
  LastIndexAny = { two, function(s, chars) return (last_where(s, set_of(chars))) end },
  LastIndexByte = { number, function(s, code) return last_index(s, S.char(code)) end },
  LastIndexFunc = { func, function(s, f) return (last_where(s, by_code(f))) end },
  Map = { { "function", "string" }, map },
  Repeat = { number, rep },
  Replace = { { "string", "string", "string", "number" }, replace },
  Split = { two, function(s, separator) return split(s, separator, false, -1) end },
  SplitAfter = { two, function(s, separator) return split(s, separator, true, -1) end },
  SplitAfterN = { limited, limited_split(true) },
  SplitN = { limited, limited_split(false) },
  Title = { one, function(s) return (gsub(s, "%f[%w_']%l", upper)) end },
  ToLower = { one, lower },
  ToTitle = { one, upper },
  ToUpper = { one, upper },
  Trim = { two, function(s, cut) return trim_left(trim_right(s, set_of(cut)), set_of(cut)) end },
  TrimFunc = { func, function(s, f) return trim_left(trim_right(s, by_code(f)), by_code(f)) end },
  TrimLeft = { two, function(s, cut) return trim_left(s, set_of(cut)) end },
  TrimLeftFunc = { func, function(s, f) return trim_left(s, by_code(f)) end },
  TrimPrefix = { two, function(s, prefix) return has_prefix(s, prefix) and sub(s, #prefix + 1) or s end },
  TrimRight = { two, function(s, cut) return trim_right(s, set_of(cut)) end },
  TrimRightFunc = { func, function(s, f) return trim_right(s, by_code(f)) end },
  TrimSpace = { one, function(s) return trim_left(trim_right(s, is_space), is_space) end },
  TrimSuffix = { two, function(s, suffix)
    return has_suffix(s, suffix) and sub(s, 1, #s - #suffix) or s
  end },
}

box.modules.strings = {}
for name, entry in pairs(exported) do
  box.modules.strings[name] = want(name, entry[1], entry[2])
end
box.want = want
