//! The functions of the server that the module calls.
//!
//! A server that lacks one of the mandatory functions is refused at load, so a call need not ask again. The optional
//! ones are asked for where they are used, and have a fallback there.

/// Declares the mandatory functions: a marker for each, which [`call!`] asks for, and the check at load.
macro_rules! mandatory {
    ($($name:ident)*) => {
        /// A marker per function that [`first_missing`] looks for: calling one that is not listed does not compile.
        #[allow(non_upper_case_globals, dead_code, reason = "named as the server names them; two are only used by the allocator")]
        pub mod checked {
            $(pub const $name: () = ();)*
        }

        /// The name of a mandatory function that this server does not have.
        pub fn first_missing() -> Option<&'static str> {
            $(
                // SAFETY: written only while the server initialises the module, on this very thread.
                if unsafe { redis_module::raw::$name }.is_none() {
                    return Some(stringify!($name));
                }
            )*
            None
        }
    };
}

mandatory! {
    RedisModule_Alloc
    RedisModule_Call
    RedisModule_CallReplyStringPtr
    RedisModule_CloseKey
    RedisModule_CreateCommand
    RedisModule_CreateDataType
    RedisModule_CreateString
    RedisModule_DefragAlloc
    RedisModule_DeleteKey
    RedisModule_DigestAddStringBuffer
    RedisModule_DigestEndSequence
    RedisModule_EmitAOF
    RedisModule_Free
    RedisModule_FreeCallReply
    RedisModule_FreeString
    RedisModule_GetAbsExpire
    RedisModule_GetCommand
    RedisModule_GetContextFlags
    RedisModule_GetNotifyKeyspaceEvents
    RedisModule_InfoAddFieldCString
    RedisModule_InfoAddFieldULongLong
    RedisModule_InfoAddSection
    RedisModule_InfoBeginDictField
    RedisModule_InfoEndDictField
    RedisModule_IsIOError
    RedisModule_IsKeysPositionRequest
    RedisModule_KeyAtPos
    RedisModule_KeyType
    RedisModule_LoadConfigs
    RedisModule_LoadStringBuffer
    RedisModule_LogIOError
    RedisModule_MallocSize
    RedisModule_ModuleTypeGetType
    RedisModule_ModuleTypeGetValue
    RedisModule_ModuleTypeSetValue
    RedisModule_NotifyKeyspaceEvent
    RedisModule_OpenKey
    RedisModule_RegisterBoolConfig
    RedisModule_RegisterInfoFunc
    RedisModule_RegisterNumericConfig
    RedisModule_RegisterStringConfig
    RedisModule_Replicate
    RedisModule_ReplicateVerbatim
    RedisModule_ReplyWithArray
    RedisModule_ReplyWithError
    RedisModule_ReplyWithLongLong
    RedisModule_ReplyWithMap
    RedisModule_ReplyWithNull
    RedisModule_ReplyWithSimpleString
    RedisModule_ReplyWithStringBuffer
    RedisModule_RetainString
    RedisModule_SaveStringBuffer
    RedisModule_SetAbsExpire
    RedisModule_SetCommandInfo
    RedisModule_SetModuleOptions
    RedisModule_SignalModifiedKey
    RedisModule_StringPtrLen
    RedisModule_WrongArity
}

/// Calls a mandatory function of the server. Expands to an unsafe call: the caller answers for the arguments.
macro_rules! call {
    ($name:ident($($argument:expr),* $(,)?)) => {{
        let () = $crate::server::api::checked::$name;
        match redis_module::raw::$name {
            Some(function) => function($($argument),*),
            // SAFETY (of the caller's block): the module is not loaded into a server that lacks a listed function.
            None => std::hint::unreachable_unchecked(),
        }
    }};
}
pub(crate) use call;
