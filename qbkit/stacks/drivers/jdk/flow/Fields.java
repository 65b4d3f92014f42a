package flow;

import java.lang.reflect.Field;
import java.util.HashMap;
import java.util.Map;

/** The private fields of an object of the JDK, in packages that --add-opens opens to us. */
class Fields {
    private final Object owner;
    private final Map<String, Field> known = new HashMap<>();

    Fields(Object owner) {
        this.owner = owner;
    }

    Object value(String name) {
        try {
            return known.computeIfAbsent(name, this::field).get(owner);
        } catch (IllegalAccessException error) {
            throw new IllegalStateException(error);
        }
    }

    long number(String name) {
        return ((Number) value(name)).longValue();
    }

    Fields inner(String name) {
        return new Fields(value(name));
    }

    private Field field(String name) {
        for (Class<?> type = owner.getClass(); type != null; type = type.getSuperclass()) {
            for (Field field : type.getDeclaredFields()) {
                if (field.getName().equals(name)) {
                    field.setAccessible(true);
                    return field;
                }
            }
        }
        throw Flow.fail("%s of this JDK has no field %s", owner.getClass().getName(), name);
    }
}
