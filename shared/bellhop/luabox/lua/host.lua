-- What the host calls: compile a script, take in values, run it over them in a fresh environment.

local box = ...

local error, type, next, rawget, tostring = error, type, next, rawget, tostring
local setfenv, loadstring, unpack, ipairs = setfenv, loadstring, unpack, ipairs
local meter, library = box.meter, box.library
local concat, sort, sub, find = table.concat, table.sort, string.sub, string.find
local globals = _G
local text_metatable = getmetatable("")
local LONGEST_MESSAGE = 2000

-- Marks in the stream of values; no UTF-8 string begins with this byte.
local MAP, LIST, END, SAME = box.map, box.list, box.stop, box.same

local stream, length = {}, 0

function box.feed(...)
  local more = { ... }
  if length == 0 then
    stream, length = more, #more
    return
  end
  for index = 1, #more do
    stream[length + index] = more[index]
  end
  length = length + #more
end

-- Each reads from a place in the stream, and returns what it made and the place behind it.
local read_list

local function read_map(stream, at)
  local map, key = {}, stream[at]
  while key ~= END do
    if key == MAP then
      map[stream[at + 1]], at = read_map(stream, at + 2)
    elseif key == LIST then
      map[stream[at + 1]], at = read_list(stream, at + 2)
    else
      map[key], at = stream[at + 1], at + 2
    end
    key = stream[at]
  end
  return map, at + 1
end

function read_list(stream, at)
  local list, count, value = {}, 0, stream[at]
  box.marks[list] = true
  while value ~= END do
    count = count + 1
    if value == MAP then
      list[count], at = read_map(stream, at + 1)
    elseif value == LIST then
      list[count], at = read_list(stream, at + 1)
    elseif value == SAME then
      list[count], at = box.given[stream[at + 1]], at + 2
    else
      list[count], at = value, at + 1
    end
    value = stream[at]
  end
  return list, at + 1
end

function box.drop()
  stream, length = {}, 0
end

-- The stream stays for the next script: what is made of it is one script's own.
local function take()
  local at
  box.marks = {}
  box.given, at = read_map(stream, 1)
  box.args = read_list(stream, at)
end

-- A function that makes a fresh table of what `parts` say, with room for all of it at once.
local function constructor(parts, ...)
  return loadstring("local f, m, r = ... return function() return {" .. concat(parts, ",") .. "} end")(...)
end

local function names_of(t)
  local names = {}
  for name in next, t do
    names[#names + 1] = name
  end
  sort(names)
  return names
end

-- A function that makes a fresh copy of a library.
local function copier(library)
  local parts = names_of(library)
  for index, name in ipairs(parts) do
    parts[index] = name .. "=f." .. name
  end
  return constructor(parts, library)
end

local fresh, modules = {}, {}
for name, library in next, box.library do
  fresh[name] = copier(library)
end
for name, module in next, box.modules do
  modules[name] = copier(module)
end

local function requirer()
  local loaded = {}
  return function(name)
    if not loaded[name] then
      if not modules[name] then
        error("module '" .. tostring(name) .. "' not found: there are json, strings and runes", 2)
      end
      loaded[name] = modules[name]()
    end
    return loaded[name]
  end
end

-- All globals but `_G`, and what makes each.
local made_by = { require = "r()" }
for name in next, library.base do
  made_by[name] = "f." .. name
end
for name in next, fresh do
  made_by[name] = name ~= "base" and "m." .. name .. "()" or nil
end
local global_names = names_of(made_by)

local makers = {}

-- Whether a text may say a global's name: `hosts` does not say `os`.
local function says(source, name)
  return find(source, "%f[%w_]" .. name .. "%f[^%w_]")
end

-- A function that makes a script's environment. Globals are reached by their names, or through
-- `_G`: what a text says neither of no script can see or change, and it is not made. Behind the
-- methods of strings is a copy of the library where the script can get hold of it.
local function maker(source)
  local everything = find(source, "_G", 1, true)
  local parts = {}
  for _, name in ipairs(global_names) do
    if everything or says(source, name) then
      parts[#parts + 1] = name .. "=" .. made_by[name]
    end
  end
  local key = concat(parts)
  if not makers[key] then
    local make = constructor(parts, library.base, fresh, requirer)
    makers[key] = function()
      local env = make()
      env._G = everything and env
      text_metatable.__index = env.string or library.string
      return env
    end
  end
  return makers[key]
end

local scripts, plain, texts, environments = {}, {}, {}, {}

-- `jointed` is the same script with numbers joined to texts as gopher-lua does, where it joins any.
function box.compile(id, source, jointed)
  local chunk, why = loadstring(source, "=script")
  scripts[id] = chunk and jointed and loadstring(jointed, "=script") or chunk
  plain[id], texts[id] = chunk, chunk and source
  return why and box.encode(why)
end

-- Looked for when a script is run first: that takes longer than to say whether it is one.
local function environment(id)
  if not environments[id] then
    environments[id], texts[id] = maker(texts[id]), nil
  end
  return environments[id]
end

function box.forget()
  scripts, plain, texts, environments, makers = {}, {}, {}, {}, {}
end

-- Nothing stops what a script has to say about its own error: no metamethod of it is asked.
local function described(message)
  if type(message) == "table" and type(rawget(message, "unfit")) == "string" then
    message = rawget(message, "unfit")
  end
  if type(message) == "string" then
    return sub(message, 1, LONGEST_MESSAGE)
  end
  return "(error object is a " .. type(message) .. " value)"
end

-- Returns a status, a text or the result as JSON, a line, and whether threads were made.
local function run(script, make, name, steps, seconds)
  local unfit, missing
  local function work()
    local env = make()
    local chunk = setfenv(script, env)
    chunk(box.joint)
    for key, value in next, box.given do
      env[key] = value
    end
    if type(env[name]) ~= "function" then
      missing = true
      return
    end
    local result = env[name](unpack(box.args))
    unfit = true
    return box.encode(result)
  end
  local sprouted, ok, result, message, line = meter.guarded(steps, seconds, work)
  box.given, box.args, box.marks = nil, nil, {}
  if missing then
    return "missing", "", nil, sprouted
  elseif ok then
    return "ok", result, nil, sprouted
  elseif result == "limit" then
    return "limit", message, line, sprouted
  end
  return unfit and "unfit" or "error", box.encode(described(message)), line, sprouted
end

-- Where something cannot be joined, Lua itself is asked once more: it says what it is called.
function box.run(id, name, steps, seconds)
  take()
  local make = environment(id)
  local status, text, line, sprouted = run(scripts[id], make, name, steps, seconds)
  if status == "error" and scripts[id] ~= plain[id] and find(text, "attempt to concatenate a ", 1, true) then
    take()
    return run(plain[id], make, name, steps, seconds)
  end
  return status, text, line, sprouted
end

text_metatable.__metatable = false
for name in next, globals do
  globals[name] = nil
end
